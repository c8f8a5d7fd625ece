// Compressed .debug_frame sections and MiniDebugInfo.
#include "elf/packed_section.h"

#include "cfi_builder.h"
#include "elf/cfi_table.h"
#include "support/catch2.h"
#include "support/packed.h"

#include <string>

using namespace sentry_prof;
using namespace sentry_prof::elf_test;
using namespace sentry_prof::test;

namespace {

constexpr uint32_t kZlib = 1, kZstd = 2;
constexpr uint64_t kFunction = 0x4000;

// One function in .debug_frame.
std::vector<std::byte> debug_frame(const ElfKind& kind = {}) {
  FrameBuilder frames({.is_eh_frame = false, .is_64_bit = kind.is_64_bit, .order = kind.order});
  frames.cie({.augmentation = "", .augmentation_data = {}});
  frames.fde(kFunction, 0x100);
  return frames.sections().debug_frame.bytes;
}

PackedBytes gnu_packed(const std::vector<std::byte>& bytes) {
  ByteWriter writer(std::endian::big);
  return writer.text("ZLIB").u64(bytes.size()).raw(zlib_packed(bytes)).bytes();
}

std::vector<std::byte> file_with(const std::string& name, const PackedBytes& contents,
                                 uint64_t flags, const ElfKind& kind = {}) {
  ElfBuilder elf(kind);
  elf.section({.name = name, .flags = flags, .contents = contents});
  return elf.build();
}

// "row", or why there is none.
std::string look_up(const std::vector<std::byte>& bytes, uint64_t max_bytes = 1 << 20) {
  const MemoryByteSource file(bytes);
  const auto layout = elf::read_layout(file);
  if (!layout) return layout.error().message;
  elf::Expansion expansion{max_bytes};
  auto sections = elf::read_debug_frame(file, *layout, expansion);
  if (!sections) return sections.error().message;
  const elf::CfiTable table(std::move(*sections));
  unwind::Row row;
  return table.row_at({kFunction + 1}, row) == unwind::RowStatus::Found ? "row" : "no row";
}

}  // namespace

TEST_CASE("rows are found in .debug_frame, stored plain or compressed in any way") {
  const ElfKind kinds[] = {{},
                           {.machine = EM_386, .is_64_bit = false},
                           {.machine = EM_PPC64, .order = std::endian::big}};
  for (const ElfKind& kind : kinds) {
    const auto plain = debug_frame(kind);
    const auto packed = [&](const PackedBytes& bytes, uint32_t type) {
      return file_with(".debug_frame", with_compression_header(bytes, plain.size(), type, kind),
                       SHF_COMPRESSED, kind);
    };
    CHECK(look_up(file_with(".debug_frame", plain, 0, kind)) == "row");
    CHECK(look_up(packed(zlib_packed(plain), kZlib)) == "row");
    CHECK(look_up(packed(zstd_packed(plain), kZstd)) == "row");
    CHECK(look_up(file_with(".zdebug_frame", gnu_packed(plain), 0, kind)) == "row");
  }
  CHECK(look_up(file_with(".text", debug_frame(), 0)) == "no row");
}

TEST_CASE("what a compressed section's header says must be so") {
  const auto plain = debug_frame();
  const PackedBytes packed = zlib_packed(plain);
  const auto error_with = [&](uint64_t size, uint32_t type, uint64_t max_bytes = 1 << 20) {
    return look_up(
        file_with(".debug_frame", with_compression_header(packed, size, type), SHF_COMPRESSED),
        max_bytes);
  };
  CHECK(error_with(plain.size() + 1, kZlib) ==
        "a compressed section is smaller than its header says");
  CHECK(error_with(plain.size() - 1, kZlib).starts_with("it expands to more than"));
  CHECK(error_with(uint64_t{1} << 40, kZlib) == "a compressed section is too large");
  CHECK(error_with(plain.size(), kZlib, plain.size() - 1) == "a compressed section is too large");
  CHECK(error_with(plain.size(), 3) == "a section is compressed in an unknown way");
  CHECK(error_with(plain.size(), kZstd).find("zstd") != std::string::npos);
  CHECK(look_up(file_with(".debug_frame", PackedBytes(10), SHF_COMPRESSED)) ==
        "a compressed section has no whole header");
  CHECK(look_up(file_with(".zdebug_frame", PackedBytes(20), 0)) ==
        "a section is compressed in an unknown way");
}

TEST_CASE("the ELF file in .gnu_debugdata is read like any other") {
  const auto inner = file_with(".debug_frame", debug_frame(), 0);
  const MemoryByteSource file(file_with(".gnu_debugdata", xz_packed(inner), 0));
  const auto layout = elf::read_layout(file);
  REQUIRE(layout);
  REQUIRE(layout->gnu_debugdata);
  elf::Expansion expansion{1 << 20};
  const auto debugdata = elf::unpack_debugdata(file, *layout, expansion);
  REQUIRE(debugdata);
  std::vector<std::byte> found((*debugdata)->size_bytes());
  REQUIRE((*debugdata)->read_at(0, found));
  CHECK(found == inner);
  CHECK(expansion.spent_bytes == inner.size());
  elf::Expansion too_small{inner.size() - 1};
  CHECK(elf::unpack_debugdata(file, *layout, too_small).error().code == ErrorCode::LimitExceeded);
  CHECK(too_small.spent_bytes == inner.size() - 1);
}
