// CIEs and FDEs: versions, formats, augmentations, and what is wrong with some.
#include "cfi_builder.h"
#include "elf/frame_section.h"
#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::elf_test;
using unwind::RowStatus;

namespace {

// What reading the first FDE of the first section that is there comes to.
elf::CfiStatus status_of_fde(const elf::CfiSections& sections) {
  const bool is_eh_frame = !sections.eh_frame.bytes.empty();
  const elf::FrameSection section = elf::frame_section(
      sections, is_eh_frame ? sections.eh_frame : sections.debug_frame, is_eh_frame);
  elf::Entry entry;
  do {
    REQUIRE(elf::read_entry(section, entry.end, entry) == elf::CfiStatus::Ok);
  } while (entry.kind != elf::EntryKind::Fde);
  elf::Cie cie;
  elf::Fde fde;
  const elf::CfiStatus status = elf::read_cie(section, entry.cie_offset, cie);
  return status == elf::CfiStatus::Ok ? elf::read_fde(section, entry, cie, fde) : status;
}

// The row at `pc`, or why the FDE that would give it cannot be read: a table has no CFI there.
RowStatus status_of(const elf::CfiSections& sections, uint64_t pc = 0x1010) {
  unwind::Row row;
  const RowStatus status = elf::CfiTable(sections).row_at({pc}, row);
  if (status != RowStatus::NoCfi) return status;
  switch (status_of_fde(sections)) {
    case elf::CfiStatus::Malformed:
      return RowStatus::Malformed;
    case elf::CfiStatus::Unsupported:
      return RowStatus::Unsupported;
    case elf::CfiStatus::Ok:
      break;
  }
  return status;
}

RowStatus status_of(const FrameBuilder& builder, uint64_t pc = 0x1010) {
  return status_of(builder.sections(), pc);
}

RowStatus status_with_cie(const CieSpec& cie) {
  FrameBuilder builder;
  builder.cie(cie);
  builder.fde(0x1000, 0x100);
  return status_of(builder);
}

// The row at 0x1010 of an FDE over [0x1000, 0x1100) with CFA offset 0x40 from 0x1010.
void check_usual_row(const FrameBuilder& builder) {
  unwind::Row row;
  REQUIRE(builder.row_at(0x1010, row) == RowStatus::Found);
  CHECK(row.begin.value == 0x1010);
  CHECK(row.end.value == 0x1100);
  CHECK(row.cfa_register == 7);
  CHECK(row.cfa_offset == 0x40);
}

const Program kUsualProgram = {0x50, 0x0e, 0x40};

}  // namespace

TEST_CASE(".eh_frame is read in both byte orders, address sizes and DWARF formats") {
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    for (const bool is_64_bit : {true, false}) {
      for (const bool is_64_bit_format : {true, false}) {
        FrameBuilder builder({true, is_64_bit, is_64_bit_format, order, 0x2000});
        builder.cie();
        builder.fde(0x1000, 0x100, kUsualProgram);
        check_usual_row(builder);
      }
    }
  }
}

TEST_CASE(".debug_frame is read in DWARF 2 to 5, both byte orders, address sizes and formats") {
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    for (const bool is_64_bit : {true, false}) {
      for (const bool is_64_bit_format : {true, false}) {
        for (const int version : {1, 3, 4}) {
          FrameBuilder builder({false, is_64_bit, is_64_bit_format, order, 0});
          builder.raw({0, 0, 0, 0});  // so that the CIE's offset is not zero
          CieSpec cie{.version = static_cast<uint8_t>(version), .augmentation = ""};
          cie.augmentation_data = {};
          cie.address_bytes = is_64_bit ? 8 : 4;
          builder.cie(cie);
          builder.fde(0x1000, 0x100, kUsualProgram);
          check_usual_row(builder);
        }
      }
    }
  }
}

TEST_CASE("the address size that a CIE of version 4 states overrules the ELF class") {
  FrameBuilder builder({.is_eh_frame = false});
  builder.cie({.version = 4, .augmentation = "", .augmentation_data = {}, .address_bytes = 4});
  ByteWriter range;
  range.u32(0x1000).u32(0x100);
  builder.fde_with_range(range.bytes(), kUsualProgram);
  check_usual_row(builder);
}

TEST_CASE("other versions, address sizes and segment selectors are unsupported") {
  CHECK(status_with_cie({.version = 0}) == RowStatus::Unsupported);
  CHECK(status_with_cie({.version = 2}) == RowStatus::Unsupported);
  CHECK(status_with_cie({.version = 5}) == RowStatus::Unsupported);
  CHECK(status_with_cie({.version = 4}) == RowStatus::Found);
  CHECK(status_with_cie({.version = 4, .address_bytes = 2}) == RowStatus::Unsupported);
  CHECK(status_with_cie({.version = 4, .segment_bytes = 4}) == RowStatus::Unsupported);
}

TEST_CASE("the return address column is a byte in version 1, an ULEB128 later") {
  const std::vector<uint8_t> column = {0x90, 0x00};  // 16, padded
  CHECK(status_with_cie({.version = 3, .return_column = column}) == RowStatus::Found);
  CHECK(status_with_cie({.return_column = {0x80}}) == RowStatus::Unsupported);
  FrameBuilder high_byte({.is_eh_frame = false});
  high_byte.cie({.augmentation = "",
                 .augmentation_data = {},
                 .return_column = {0x85},  // with the program's first byte, an ULEB128 of 5
                 .program = {0x00, 0x0c, 7, 8}});
  high_byte.fde(0x1000, 0x100);
  CHECK(status_of(high_byte) == RowStatus::Unsupported);
  CHECK(status_with_cie({.version = 3, .return_column = {0x80, 0x01}}) == RowStatus::Unsupported);
}

TEST_CASE("augmentations are read: signal frames, personality, LSDA, aarch64's marks") {
  FrameBuilder builder;
  // P: indirect pcrel sdata4; L: pcrel sdata4; R: absolute.
  builder.cie({.augmentation = "zPLRSBG",
               .augmentation_data = {0x9b, 1, 2, 3, 4, 0x1b, 0x00},
               .program = kUsualStart});
  ByteWriter body;
  body.u64(0x1000).u64(0x100).u8(4).u32(0x12345678).u8(0x50).u8(0x0e).u8(0x40);
  builder.fde_of_body(body.bytes());
  check_usual_row(builder);
  unwind::Row row;
  REQUIRE(builder.row_at(0x1000, row) == RowStatus::Found);
  CHECK(row.is_signal_frame);
}

TEST_CASE("a signal frame's S stands alone in .debug_frame") {
  FrameBuilder builder({.is_eh_frame = false});
  builder.cie({.augmentation = "S", .augmentation_data = {}});
  builder.fde(0x1000, 0x100);
  unwind::Row row;
  REQUIRE(builder.row_at(0x1000, row) == RowStatus::Found);
  CHECK(row.is_signal_frame);
}

TEST_CASE("unknown letters, repeated ones, and operands without a length are refused") {
  CHECK(status_with_cie({.augmentation = "zRx"}) == RowStatus::Unsupported);
  CHECK(status_with_cie({.augmentation = "eh"}) == RowStatus::Unsupported);
  CHECK(status_with_cie({.augmentation = "R"}) == RowStatus::Unsupported);
  CHECK(status_with_cie({.augmentation = "Rz"}) == RowStatus::Unsupported);
  CHECK(status_with_cie({.augmentation = "zRR", .augmentation_data = {0, 0}}) ==
        RowStatus::Malformed);
  CHECK(status_with_cie({.augmentation = "z" + std::string(200'000, 'P')}) == RowStatus::Malformed);
}

TEST_CASE("augmentation data that the letters overrun is malformed, spare data is skipped") {
  CHECK(status_with_cie({.augmentation = "zPR", .augmentation_data = {0x00, 1, 2}}) ==
        RowStatus::Malformed);
  // The personality's four bytes end in the program.
  CHECK(status_with_cie({.augmentation = "zRP", .augmentation_data = {0x00, 0x03, 1}}) ==
        RowStatus::Malformed);
  CHECK(status_with_cie({.augmentation_data = {0x00, 0xff, 0xff}}) == RowStatus::Found);
  CHECK(status_with_cie({.augmentation = "zRP", .augmentation_data = {0x00, 0x0f}}) ==
        RowStatus::Unsupported);
}

TEST_CASE("a CIE's head of more than 64 bytes is malformed") {
  std::vector<uint8_t> padded(70, 0x80);
  padded.back() = 0x00;
  CHECK(status_with_cie({.code_alignment = padded}) == RowStatus::Malformed);
}

TEST_CASE("FDE addresses are decoded with the CIE's encoding") {
  FrameBuilder pc_relative;
  pc_relative.cie({.augmentation_data = {0x1b}});
  ByteWriter range;
  range.u32(0x1000 - pc_relative.next_body_address()).u32(0x100);
  pc_relative.fde_with_range(range.bytes(), kUsualProgram);
  check_usual_row(pc_relative);

  FrameBuilder leb;
  leb.cie({.augmentation_data = {0x01}});
  leb.fde_with_range(ByteWriter().u8(0x80).u8(0x20).u8(0x80).u8(0x02).bytes(), kUsualProgram);
  check_usual_row(leb);

  FrameBuilder indirect;
  indirect.cie({.augmentation_data = {0x80}});
  indirect.fde(0x1000, 0x100);
  CHECK(status_of(indirect) == RowStatus::Unsupported);
}

TEST_CASE("FDE addresses relative to the text need its address") {
  FrameBuilder builder;
  builder.cie({.augmentation_data = {0x23}});
  builder.fde_with_range(ByteWriter().u32(0x800).u32(0x100).bytes(), kUsualProgram);
  CHECK(status_of(builder) == RowStatus::Unsupported);
  elf::CfiSections sections = builder.sections();
  sections.text = {0x800};
  unwind::Row row;
  CHECK(elf::CfiTable(std::move(sections)).row_at({0x1010}, row) == RowStatus::Found);
  CHECK(row.cfa_offset == 0x40);
}

TEST_CASE("set_loc's operand is encoded as the FDE's addresses, and may be relative to those") {
  FrameBuilder builder;
  builder.cie({.augmentation_data = {0x1b}});
  const uint64_t body = builder.next_body_address();
  ByteWriter fde;
  fde.u32(0x1000 - body).u32(0x100).u8(0).u8(0x01).u32(0x1010 - (body + 10)).u8(0x0e).u8(0x40);
  builder.fde_of_body(fde.bytes());
  check_usual_row(builder);
}

TEST_CASE("an FDE whose augmentation data overruns it is malformed") {
  FrameBuilder builder;
  builder.cie();
  builder.fde_of_body(ByteWriter().u64(0x1000).u64(0x100).u8(2).u8(0).bytes());
  CHECK(status_of(builder) == RowStatus::Malformed);
}

TEST_CASE("an FDE whose CIE is elsewhere, no CIE, or outside is malformed") {
  for (const uint32_t distance : {1u, 0x1du, 0x7fffffffu, 0xffffffffu}) {
    CAPTURE(distance);
    FrameBuilder builder;
    builder.cie();
    builder.fde(0x1000, 0x100);
    elf::CfiSections sections = builder.sections();
    const size_t fde_id = size_t{4} + ByteReader(sections.eh_frame.bytes).u32() + 4;
    for (unsigned i = 0; i < 4; ++i) {
      sections.eh_frame.bytes[fde_id + i] = static_cast<std::byte>(distance >> (8 * i) & 0xff);
    }
    CHECK(status_of(sections) == RowStatus::Malformed);
  }
}

TEST_CASE("terminators and entries too short for an id are stepped over") {
  FrameBuilder builder;
  builder.terminator();
  builder.cie();
  builder.terminator();
  builder.raw({2, 0, 0, 0, 0xaa, 0xbb});
  builder.fde(0x1000, 0x100, kUsualProgram);
  builder.terminator();
  builder.fde(0x3000, 0x100);
  check_usual_row(builder);
  CHECK(status_of(builder, 0x3000) == RowStatus::Found);
}

TEST_CASE("an entry of the 64-bit format that is too short for its id is stepped over") {
  FrameBuilder builder({.is_eh_frame = false});
  builder.cie({.augmentation = "", .augmentation_data = {}});
  builder.raw({0xff, 0xff, 0xff, 0xff, 7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7});
  builder.fde(0x1000, 0x100, kUsualProgram);
  check_usual_row(builder);
  CHECK(status_of(builder, 0x3000) == RowStatus::NoCfi);
}

TEST_CASE("an entry that reaches past the section ends the reading, not what was before") {
  for (const std::vector<uint8_t>& head :
       {std::vector<uint8_t>{0xf0, 0, 0, 0, 0, 0, 0, 0},
        {0xf0, 0xff, 0xff, 0xff, 0, 0, 0, 0},
        {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {1, 0}}) {
    CAPTURE(head);
    FrameBuilder builder;
    builder.cie();
    builder.fde(0x1000, 0x100, kUsualProgram);
    builder.raw(head);
    check_usual_row(builder);
    CHECK(status_of(builder, 0x3000) == RowStatus::Malformed);
  }
}

TEST_CASE("FDEs of no length, discarded ones, and those whose range wraps, cover nothing") {
  FrameBuilder builder;
  builder.cie();
  builder.fde(0x1000, 0);
  builder.fde(~uint64_t{0}, 0x10);
  builder.fde(0, 0x2000);
  builder.fde(0x1000, 0x100, kUsualProgram);
  check_usual_row(builder);
  CHECK(status_of(builder, 0) == RowStatus::NoCfi);
  CHECK(status_of(builder, 0xfff) == RowStatus::NoCfi);
  CHECK(status_of(builder, ~uint64_t{0}) == RowStatus::NoCfi);

  FrameBuilder narrow({.is_64_bit = false});
  narrow.cie();
  narrow.fde(0xffff'fff0, 0x10);
  narrow.fde(0xffff'ff00, 0x10);
  CHECK(status_of(narrow, 0xffff'fff0) == RowStatus::NoCfi);
  CHECK(status_of(narrow, 0xffff'ff00) == RowStatus::Found);
}
