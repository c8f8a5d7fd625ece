// Sections that are left in their file: what is read of them, when, and what if it cannot be.
#include "cfi_builder.h"
#include "elf/layout.h"
#include "support/catch2.h"
#include "support/piecewise_source.h"

#include <thread>

using namespace sentry_prof;
using namespace sentry_prof::elf;
using namespace sentry_prof::elf_test;
using test::ElfBuilder;
using test::PiecewiseSource;
using unwind::RowStatus;

namespace {

constexpr uint64_t kFunctions = 8000;
constexpr uint64_t kFunction_bytes = 0x10;
constexpr uint64_t kCode = 0x100'0000;

uint64_t address_of(uint64_t function) { return kCode + function * kFunction_bytes; }
int64_t cfa_offset_of(uint64_t function) { return 8 + static_cast<int64_t>(function % 100); }

// 8,000 functions, whose FDEs take 320 KiB, and the linker's table of them.
ElfBuilder many_functions() {
  constexpr uint64_t kFrames = 0x2000, kTable = 0x100'000;
  FrameBuilder frames;
  ByteWriter table;
  table.u8(1).u8(0x03).u8(0x03).u8(0x03).u32(kFrames).u32(kFunctions);
  frames.cie();
  for (uint64_t i = 0; i < kFunctions; ++i) {
    const auto offset = static_cast<uint8_t>(cfa_offset_of(i));
    const uint64_t fde = frames.fde(address_of(i), kFunction_bytes, {0x0e, offset});
    table.u32(address_of(i)).u32(kFrames + fde);
  }
  ElfBuilder elf;
  elf.section(
      {.name = ".eh_frame", .address = kFrames, .contents = frames.sections().eh_frame.bytes});
  elf.section({.name = ".eh_frame_hdr", .address = kTable, .contents = table.bytes()});
  elf.segment({.type = PT_LOAD, .of_section = ".eh_frame"});
  elf.segment({.type = PT_GNU_EH_FRAME, .of_section = ".eh_frame_hdr"});
  return elf;
}

struct OpenedFile {
  OpenedFile()
      : source(std::make_shared<PiecewiseSource>(many_functions().build())),
        layout(read_layout(*source).value()) {}

  CfiSections open() const { return open_cfi_sections(source, layout).value(); }

  std::shared_ptr<PiecewiseSource> source;
  Layout layout;
};

// The CFA offset of the function's row; minus the status where there is none.
int64_t offset_at(const CfiTable& table, uint64_t function) {
  unwind::Row row;
  const RowStatus status = table.row_at({address_of(function)}, row);
  return status == RowStatus::Found ? row.cfa_offset : -static_cast<int64_t>(status);
}

}  // namespace

TEST_CASE("of a section left in its file, what a row needs is read, once") {
  const OpenedFile file;
  const CfiTable table(file.open());
  const uint64_t before_bytes = file.source->read_bytes;
  CHECK(offset_at(table, 4000) == cfa_offset_of(4000));
  const uint64_t read_bytes = file.source->read_bytes - before_bytes;
  CHECK(read_bytes > 0);
  CHECK(read_bytes <= 32 << 10);  // of 320 KiB: the blocks of the CIE and of the FDE
  const uint64_t reads = file.source->reads;
  CHECK(offset_at(table, 4000) == cfa_offset_of(4000));
  CHECK(offset_at(table, 4001) == cfa_offset_of(4001));
  CHECK(file.source->reads == reads);
}

TEST_CASE("what was read of a section stays as it was, whatever becomes of the file") {
  const OpenedFile file;
  const CfiTable table(file.open());
  CHECK(offset_at(table, 0) == cfa_offset_of(0));
  std::ranges::fill(file.source->bytes, std::byte{0xff});
  CHECK(offset_at(table, 0) == cfa_offset_of(0));
  CHECK(offset_at(table, 1) == cfa_offset_of(1));
  CHECK(offset_at(table, 7999) == -static_cast<int64_t>(RowStatus::Malformed));
  CHECK_FALSE(table.has_unreadable_bytes());
}

TEST_CASE("a block that cannot be read has no rows, is told of, and is not asked for again") {
  const OpenedFile file;
  const CfiTable table(file.open());
  file.source->readable_bytes = file.layout.eh_frame->file_offset + (64 << 10);
  CHECK(offset_at(table, 10) == cfa_offset_of(10));
  CHECK_FALSE(table.has_unreadable_bytes());
  CHECK(offset_at(table, 7999) == -static_cast<int64_t>(RowStatus::Malformed));
  CHECK(table.has_unreadable_bytes());
  CHECK(offset_at(table, 10) == cfa_offset_of(10));
  const SectionInFile section(file.source, file.layout.eh_frame->file_offset, 300 << 10);
  CHECK_FALSE(section.bring(0, 300 << 10));
  const uint64_t reads = file.source->reads;
  CHECK_FALSE(section.bring(200 << 10, 201 << 10));
  CHECK_FALSE(section.bring(64 << 10, 65 << 10));
  CHECK(file.source->reads == reads + 1);  // block 25 for the first time
}

TEST_CASE("a range outside of a section left in its file cannot be brought") {
  const auto source = std::make_shared<PiecewiseSource>(std::vector<std::byte>(20'000));
  const SectionInFile section(source, 100, 10'000);
  CHECK(section.bring(0, 10'000));
  CHECK(section.bring(10'000, 10'000));
  CHECK_FALSE(section.bring(0, 10'001));
  CHECK_FALSE(section.bring(9'999, UINT64_MAX));
  CHECK_FALSE(section.bring(2, 1));
  CHECK(source->reads == 2);
  CHECK(source->read_bytes == 10'000);
}

TEST_CASE("two threads may read one section left in its file") {
  const OpenedFile file;
  const CfiSections sections = file.open();
  const CfiSections copied = read_cfi_sections(*file.source, file.layout).value();
  const SectionInFile& section = *sections.eh_frame.in_file;
  const auto bring_all = [&](uint64_t step) {
    for (uint64_t at = 0; at + step <= section.bytes().size(); at += step) {
      if (!section.bring(at, at + step)) std::abort();
    }
  };
  std::thread other(bring_all, 100);
  bring_all(10);
  other.join();
  REQUIRE(section.bring(0, section.bytes().size()));
  CHECK(std::ranges::equal(section.bytes(), copied.eh_frame.bytes));
}

TEST_CASE("a section that no place is left for is not left in its file either") {
  const OpenedFile file;
  const auto sections = open_cfi_sections(file.source, file.layout, 200 << 10);
  REQUIRE_FALSE(sections.has_value());
  CHECK(sections.error().code == ErrorCode::LimitExceeded);
}
