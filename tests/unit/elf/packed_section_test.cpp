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
  uint64_t left_bytes = 1 << 20;
  auto sections = elf::read_debug_frame(file, *layout, {max_bytes, left_bytes});
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
  const PackedBytes packed = xz_packed(inner);
  const MemoryByteSource file(file_with(".gnu_debugdata", packed, 0));
  const auto layout = elf::read_layout(file);
  REQUIRE(layout);
  REQUIRE(layout->gnu_debugdata);
  uint64_t left_bytes = 1 << 20;
  const auto debugdata = elf::unpack_debugdata(file, *layout, {1 << 20, left_bytes});
  REQUIRE(debugdata);
  std::vector<std::byte> found((*debugdata)->size_bytes());
  REQUIRE((*debugdata)->read_at(0, found));
  CHECK(found == inner);
  CHECK(left_bytes == (1 << 20) - packed.size() - inner.size());
  const auto code_of = [&](uint64_t max_bytes, uint64_t& left) {
    return elf::unpack_debugdata(file, *layout, {max_bytes, left}).error().code;
  };
  left_bytes = 1 << 20;
  CHECK(code_of(inner.size() - 1, left_bytes) == ErrorCode::LimitExceeded);
  CHECK(left_bytes == (1 << 20) - packed.size() - (inner.size() - 1));
  left_bytes = packed.size() + inner.size() - 1;
  CHECK(code_of(1 << 20, left_bytes) == ErrorCode::LimitExceeded);
  CHECK(left_bytes == 0);
  left_bytes = packed.size() - 1;
  CHECK(code_of(1 << 20, left_bytes) == ErrorCode::LimitExceeded);
  CHECK(left_bytes == packed.size() - 1);  // not begun
}

TEST_CASE("what is stored is paid for though nothing comes of it") {
  ByteWriter blocks;
  blocks.u8(0x78).u8(0x01);
  for (int i = 0; i < 1000; ++i) blocks.u8(0).u16(0).u16(0xffff);  // empty, more to come
  blocks.u8(1).u16(0).u16(0xffff).u8(0).u8(0).u8(0).u8(1);         // the last; of nothing: 1
  const MemoryByteSource file(
      file_with(".debug_frame", with_compression_header(blocks.bytes(), 0, kZlib), SHF_COMPRESSED));
  const auto layout = elf::read_layout(file);
  REQUIRE(layout);
  uint64_t left_bytes = 10'000;
  const elf::Expansion expansion{1 << 20, left_bytes};
  const auto unpack = [&] {
    return elf::unpack_section(file, *layout, *layout->packed_debug_frame, expansion);
  };
  REQUIRE(unpack());
  CHECK(left_bytes == 10'000 - blocks.size());
  CHECK(unpack().error().code == ErrorCode::LimitExceeded);
  CHECK(left_bytes == 10'000 - blocks.size());
}
