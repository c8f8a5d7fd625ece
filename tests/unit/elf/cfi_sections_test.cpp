// Copying the sections out of ELF files.
#include "cfi_builder.h"
#include "elf/layout.h"
#include "support/catch2.h"
#include "support/piecewise_source.h"

#include <memory>

using namespace sentry_prof;
using namespace sentry_prof::elf;
using namespace sentry_prof::elf_test;
using test::ElfBuilder;
using test::ElfKind;

namespace {

FrameBuilder two_fdes(ElfKind kind) {
  FrameBuilder builder({.is_64_bit = kind.is_64_bit, .order = kind.order});
  builder.cie();
  builder.fde(0x1000, 0x100, {0x0e, 0x11});
  builder.fde(0x1100, 0x100, {0x0e, 0x12});
  return builder;
}

// The head alone, or with a table whose last entry stands for all that matters here.
std::vector<std::byte> header(ElfKind kind, std::optional<uint64_t> last_fde_address) {
  ByteWriter writer(kind.order, kind.is_64_bit);
  writer.u8(1).u8(0x03).u8(0x03).u8(0x03).u32(0x2000);
  if (!last_fde_address) return writer.u32(0).bytes();
  return writer.u32(1).u32(0x1100).u32(*last_fde_address).bytes();
}

ElfBuilder image(ElfKind kind, const std::vector<std::byte>& header_bytes,
                 const std::vector<std::byte>& eh_frame_and_more) {
  ElfBuilder elf(kind);
  elf.section({.name = ".eh_frame_hdr", .address = kHeaderAddress, .contents = header_bytes});
  elf.section({.name = ".eh_frame", .address = 0x2000, .contents = eh_frame_and_more});
  elf.segment({.type = PT_LOAD, .of_section = ".eh_frame"});
  elf.segment({.type = PT_GNU_EH_FRAME, .of_section = ".eh_frame_hdr"});
  return elf;
}

Result<CfiSections> read(const ElfBuilder& elf) {
  const MemoryByteSource file(elf.build());
  const Result<Layout> layout = read_layout(file);
  REQUIRE(layout.has_value());
  return read_cfi_sections(file, *layout);
}

std::vector<std::byte> followed_by(std::vector<std::byte> bytes, size_t count, int value) {
  bytes.insert(bytes.end(), count, static_cast<std::byte>(value));
  return bytes;
}

}  // namespace

TEST_CASE("sections are copied with their addresses, class, order and entry") {
  const ElfKind kind{.is_64_bit = false, .order = std::endian::big, .entry = 0x1234};
  const std::vector<std::byte> eh_frame = two_fdes(kind).sections().eh_frame.bytes;
  ElfBuilder elf = image(kind, header(kind, std::nullopt), eh_frame);
  elf.section({.name = ".debug_frame", .flags = 0, .contents = test::to_bytes("debug")});
  elf.section({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = 0x1000,
               .contents = test::to_bytes("code")});
  const Result<CfiSections> sections = read(elf);
  REQUIRE(sections.has_value());
  CHECK_FALSE(sections->is_64_bit);
  CHECK(sections->order == std::endian::big);
  CHECK(sections->entry.value == 0x1234);
  CHECK(sections->text.value == 0x1000);
  CHECK(sections->eh_frame.address.value == 0x2000);
  CHECK(sections->eh_frame.bytes == eh_frame);
  CHECK(sections->eh_frame_hdr.address.value == kHeaderAddress);
  CHECK(sections->debug_frame.bytes == test::to_bytes("debug"));
}

TEST_CASE("a file without call frame information has empty sections") {
  const Result<CfiSections> sections = read(ElfBuilder());
  REQUIRE(sections.has_value());
  CHECK(sections->eh_frame.bytes.empty());
  CHECK(sections->eh_frame_hdr.bytes.empty());
  CHECK(sections->debug_frame.bytes.empty());
}

TEST_CASE("without section headers .eh_frame is what follows where its header says it begins") {
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    const ElfKind kind{.order = order, .with_section_headers = false};
    const std::vector<std::byte> segment =
        followed_by(two_fdes(kind).sections().eh_frame.bytes, 5000, 0xee);
    const Result<CfiSections> sections = read(image(kind, header(kind, std::nullopt), segment));
    REQUIRE(sections.has_value());
    CHECK(sections->eh_frame.address.value == 0x2000);
    CHECK(sections->eh_frame.bytes == segment);
    CHECK_FALSE(sections->eh_frame.end_is_known);
  }
}

TEST_CASE("without section headers .eh_frame ends with its terminator, or with what is no entry") {
  const ElfKind kind{.with_section_headers = false};
  for (const uint8_t behind : {uint8_t{0}, uint8_t{0xee}}) {
    FrameBuilder builder = two_fdes(kind);
    builder.raw({behind, behind, behind, behind});
    builder.fde(0x1200, 0x100);
    const std::vector<std::byte> segment = builder.sections().eh_frame.bytes;
    const CfiTable table(read(image(kind, header(kind, std::nullopt), segment)).value());
    unwind::Row row;
    CHECK(table.row_at({0x11ff}, row) == unwind::RowStatus::Found);
    CHECK(table.row_at({0x1200}, row) == unwind::RowStatus::NoCfi);
  }
}

TEST_CASE("zeros that a lying table takes for .eh_frame are neither read nor gone through") {
  const ElfKind kind{.with_section_headers = false};
  const std::vector<std::byte> zeros(1 << 20);
  const auto head = header(kind, 0x2000 + zeros.size() - 4);
  const auto file = std::make_shared<test::PiecewiseSource>(image(kind, head, zeros).build());
  const Layout layout = read_layout(*file).value();
  const uint64_t before_bytes = file->read_bytes;
  const auto budget = std::make_shared<CfiBudget>();
  const CfiTable table(open_cfi_sections(file, layout).value(), budget);
  CHECK(file->read_bytes - before_bytes == head.size());
  unwind::Row row;
  CHECK(table.row_at({0x1100}, row) == unwind::RowStatus::NoCfi);
  CHECK(budget->indexable_entries_left == CfiBudget::kMostIndexable_entries - 1);
}

TEST_CASE("an .eh_frame_hdr that points outside the segments finds nothing") {
  const ElfKind kind{.with_section_headers = false};
  std::vector<std::byte> elsewhere = header(kind, std::nullopt);
  elsewhere[6] = std::byte{0x55};
  const std::vector<std::byte> eh_frame = two_fdes(kind).sections().eh_frame.bytes;
  const Result<CfiSections> outside = read(image(kind, elsewhere, eh_frame));
  REQUIRE(outside.has_value());
  CHECK(outside->eh_frame.bytes.empty());
}

TEST_CASE("a file that ends before the section is an error, not a crash") {
  const ElfKind kind;
  const std::vector<std::byte> eh_frame = two_fdes(kind).sections().eh_frame.bytes;
  std::vector<std::byte> bytes = image(kind, header(kind, std::nullopt), eh_frame).build();
  const MemoryByteSource whole(bytes);
  const Result<Layout> layout = read_layout(whole);
  REQUIRE(layout.has_value());
  bytes.resize(200);  // truncated between the two readings
  const Result<CfiSections> sections = read_cfi_sections(MemoryByteSource(bytes), *layout);
  REQUIRE_FALSE(sections.has_value());
  CHECK(sections.error().code == ErrorCode::Malformed);
}

TEST_CASE("sections of more than 64 MiB are refused without being read") {
  Layout layout;
  layout.debug_frame = Section{.size_bytes = (uint64_t{64} << 20) + 1};
  const Result<CfiSections> sections = read_cfi_sections(MemoryByteSource({}), layout);
  REQUIRE_FALSE(sections.has_value());
  CHECK(sections.error().code == ErrorCode::LimitExceeded);
}

TEST_CASE("sections that are larger together than is allowed are refused, the least needed first") {
  const ElfKind kind;
  const std::vector<std::byte> eh_frame = two_fdes(kind).sections().eh_frame.bytes;
  const std::vector<std::byte> head = header(kind, std::nullopt);
  ElfBuilder elf = image(kind, head, eh_frame);
  elf.section({.name = ".debug_frame", .flags = 0, .contents = test::to_bytes("debug")});
  const MemoryByteSource file(elf.build());
  const Result<Layout> layout = read_layout(file);
  REQUIRE(layout.has_value());
  const uint64_t sum = head.size() + eh_frame.size() + 5;
  CHECK(read_cfi_sections(file, *layout, sum).value().problem.empty());
  const CfiSections without_debug_frame = read_cfi_sections(file, *layout, sum - 1).value();
  CHECK(without_debug_frame.eh_frame.bytes == eh_frame);
  CHECK(without_debug_frame.debug_frame.bytes.empty());
  CHECK(without_debug_frame.problem.starts_with(".debug_frame is larger"));
  for (const uint64_t less : {sum - 6, head.size() + 1, uint64_t{0}}) {
    const Result<CfiSections> sections = read_cfi_sections(file, *layout, less);
    REQUIRE_FALSE(sections.has_value());
    CHECK(sections.error().code == ErrorCode::LimitExceeded);
  }
}
