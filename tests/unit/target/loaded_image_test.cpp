// One image: what it loads of its tables, when, and what if it cannot.
#include "target/loaded_image.h"

#include "support/catch2.h"
#include "support/go_table_builder.h"
#include "support/piecewise_source.h"
#include "unit/elf/cfi_builder.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

// A library with an .eh_frame of its own, of which a row needs little.
struct LibraryInPieces {
  LibraryInPieces()
      : file(std::make_shared<PiecewiseSource>(bytes())),
        layout(elf::read_layout(*file).value()),
        image(0, "/lib/a.so", file, layout, {}, {}, budget) {}

  static std::vector<std::byte> bytes() {
    elf_test::FrameBuilder frames;
    frames.cie();
    for (uint64_t i = 0; i < 1000; ++i) frames.fde(0x10000 + 16 * i, 16);
    ElfBuilder elf;
    elf.section(
        {.name = ".eh_frame", .address = 0x2000, .contents = frames.sections().eh_frame.bytes});
    elf.segment({.type = PT_LOAD, .of_section = ".eh_frame"});
    return elf.build();
  }

  unwind::RowStatus at(uint64_t pc) {
    unwind::Row row;
    return image.row_at({pc}, row);
  }

  std::shared_ptr<PiecewiseSource> file;
  elf::Layout layout;
  std::shared_ptr<elf::CfiBudget> budget =
      std::make_shared<elf::CfiBudget>(elf::CfiBudget{.bytes_left = 1 << 20});
  target::LoadedImage image;
};

}  // namespace

TEST_CASE("an image whose file is cut off while it is used says that rows are missing") {
  LibraryInPieces library;
  CHECK(library.at(0x10000) == unwind::RowStatus::Found);
  CHECK(library.image.cfi_error().empty());
  LibraryInPieces cut_off;
  cut_off.file->readable_bytes = cut_off.layout.eh_frame->file_offset + 10'000;
  CHECK(cut_off.at(0x10000 + 16 * 999) == unwind::RowStatus::Malformed);
  CHECK(cut_off.image.cfi_error() == ".eh_frame cannot be read from the file any more");
  CHECK(cut_off.image.has_cfi());
}

TEST_CASE("an image pays for a section that it leaves in its file as for one that it copies") {
  LibraryInPieces library;
  const uint64_t before_bytes = library.budget->bytes_left;
  CHECK(library.at(0x10000) == unwind::RowStatus::Found);
  CHECK(before_bytes - library.budget->bytes_left >= library.layout.eh_frame->size_bytes);
  library.image.forget_cfi();
  CHECK(library.budget->bytes_left == before_bytes);
}

namespace {

// Two functions of 16 bytes, the first with a CFA expression; the linker's table has the first one,
// and sends whoever asks for the second one into the middle of an entry.
std::vector<std::byte> library_that_needs_an_index() {
  constexpr uint64_t kFrames = 0x2000, kHeader = 0x3000, kFirst = 0x10000, kSecond = 0x10010;
  elf_test::FrameBuilder frames({.address = kFrames});
  frames.cie();
  const uint64_t fde = frames.fde(kFirst, 16, {0x0f, 2, 0x77, 8});  // def_cfa_expression: breg7 8
  frames.fde(kSecond, 16);
  ByteWriter header;
  header.u8(1).u8(0x1b).u8(0x03).u8(0x3b).u32(static_cast<uint32_t>(kFrames - kHeader - 4)).u32(2);
  header.u32(kFirst - kHeader).u32(static_cast<uint32_t>(kFrames + fde - kHeader));
  header.u32(kSecond - kHeader).u32(static_cast<uint32_t>(kFrames + fde + 1 - kHeader));
  ElfBuilder elf;
  elf.section(
      {.name = ".eh_frame", .address = kFrames, .contents = frames.sections().eh_frame.bytes});
  elf.section({.name = ".eh_frame_hdr", .address = kHeader, .contents = header.bytes()});
  elf.segment({.type = PT_LOAD, .of_section = ".eh_frame"});
  elf.segment({.type = PT_GNU_EH_FRAME, .of_section = ".eh_frame_hdr"});
  return elf.build();
}

}  // namespace

TEST_CASE("a row's expressions stay though there is no memory for another address's index") {
  const auto file = std::make_shared<MemoryByteSource>(library_that_needs_an_index());
  const auto layout = elf::read_layout(*file).value();
  const auto image_with = [&](uint64_t budget_bytes) {
    return std::make_unique<target::LoadedImage>(
        0, "/lib/a.so", file, layout, elf::Identity{}, RuntimeAddress{},
        std::make_shared<elf::CfiBudget>(elf::CfiBudget{.bytes_left = budget_bytes}));
  };
  unwind::Row row, other;
  const auto rich = image_with(1 << 20);
  REQUIRE(rich->row_at({0x10000}, row) == unwind::RowStatus::Found);
  const uint64_t needed_bytes = rich->cfi_bytes();
  CHECK(rich->row_at({0x10010}, other) == unwind::RowStatus::Found);

  const auto poor = image_with(needed_bytes);
  REQUIRE(poor->row_at({0x10000}, row) == unwind::RowStatus::Found);
  CHECK(poor->row_at({0x10010}, other) == unwind::RowStatus::NoCfi);
  CHECK(poor->cfi_error() == "its index is larger than what is left for all images");
  REQUIRE(row.cfa_expression.size() == 2);
  CHECK(row.cfa_expression[0] == std::byte{0x77});
}

namespace {

// A Go program whose functions, of one byte each, begin at link address 0x1000.
struct GoImage {
  explicit GoImage(uint64_t budget_bytes, size_t functions = 0x40)
      : file(std::make_shared<MemoryByteSource>(
            go_image(go_table(std::vector<GoFunction>(functions, {"f", 1, 0, {{1, 8}}}))))),
        budget(std::make_shared<elf::CfiBudget>(elf::CfiBudget{.bytes_left = budget_bytes})),
        image(0, "/bin/go", file, elf::read_layout(*file).value(), {}, {}, budget) {}

  unwind::RowStatus at(uint64_t pc) {
    unwind::Row row;
    return image.row_at({pc}, row);
  }

  std::shared_ptr<const MemoryByteSource> file;
  std::shared_ptr<elf::CfiBudget> budget;
  target::LoadedImage image;
};

}  // namespace

TEST_CASE("an image of Go's has the rows of its runtime's table, and pays for it") {
  constexpr uint64_t kBudget_bytes = 1 << 20;
  GoImage go(kBudget_bytes);
  CHECK_FALSE(go.image.has_frame_pointers({0x1000}));  // not before it was needed
  CHECK(go.at(0x1000) == unwind::RowStatus::Found);
  CHECK(go.at(0x1040) == unwind::RowStatus::NoCfi);
  CHECK(go.image.has_frame_pointers({0x1000}));
  CHECK(go.image.cfi_bytes() > 0);
  CHECK(go.budget->bytes_left == kBudget_bytes - go.image.cfi_bytes());
  CHECK(go.image.cfi_error().empty());
  go.image.forget_cfi();
  CHECK(go.budget->bytes_left == kBudget_bytes);
  CHECK(go.at(0x1000) == unwind::RowStatus::NoCfi);
  CHECK_FALSE(go.image.has_frame_pointers({0x1000}));
}

TEST_CASE("an image of Go's without the memory for its table says so, and keeps nothing of it") {
  constexpr uint64_t kBudget_bytes = 8000;
  GoImage go(kBudget_bytes, 1000);
  CHECK(go.at(0x1000) == unwind::RowStatus::NoCfi);
  CHECK(go.image.cfi_error().starts_with("the table of Go's functions is larger"));
  CHECK(go.budget->bytes_left == kBudget_bytes - go.image.cfi_bytes());
}

namespace {

constexpr uint64_t kStart = 0x1000;

// A program without unwind information; its start code calls the function behind it, and traps.
std::vector<std::byte> program_without_rows() {
  ByteWriter code;
  code.u8(0x31).u8(0xed);         // xor %ebp,%ebp
  code.u8(0xe8).u32(1).u8(0xf4);  // call, over this hlt
  for (int i = 0; i < 100; ++i) code.u8(0x90);
  ElfBuilder elf({.entry = kStart});
  elf.section({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = kStart,
               .contents = code.bytes()});
  elf.segment({.type = PT_LOAD, .flags = PF_R | PF_X, .of_section = ".text"});
  return elf.build();
}

}  // namespace

TEST_CASE(
    "a program's start code without rows is the root, but not what is little behind its end") {
  const auto file = std::make_shared<MemoryByteSource>(program_without_rows());
  const target::LoadedImage image(0, "/bin/a", file, elf::read_layout(*file).value(), {}, {},
                                  std::make_shared<elf::CfiBudget>());
  const auto at = [&image](uint64_t offset) {
    unwind::Row row;
    return image.row_at({kStart + offset}, row);
  };
  CHECK(at(0) == unwind::RowStatus::Root);
  CHECK(at(6) == unwind::RowStatus::Root);  // of the call's return address
  CHECK(at(7) == unwind::RowStatus::Root);
  CHECK(at(8) == unwind::RowStatus::NoCfi);
  CHECK(at(70) == unwind::RowStatus::NoCfi);
}

namespace {

constexpr uint64_t kBeforeReturn = 0x1000, kBehindReturn = kBeforeReturn + 2;

// Two functions, one behind the other: `nop; ret`, and the call of rt_sigreturn, with ordinary rows
// or, the second, without.
std::vector<std::byte> program_with_signal_return(bool has_row) {
  ByteWriter code;
  code.u8(0x90).u8(0xc3).u8(0xb8).u32(15).u8(0x0f).u8(0x05);  // mov $15,%eax; syscall
  for (int i = 0; i < 100; ++i) code.u8(0x90);
  elf_test::FrameBuilder frames;
  frames.cie();
  frames.fde(kBeforeReturn, 2);
  if (has_row) frames.fde(kBehindReturn, 7);
  frames.fde(kBehindReturn + 7, 100);
  ElfBuilder elf;
  elf.section({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = kBeforeReturn,
               .contents = code.bytes()});
  elf.section(
      {.name = ".eh_frame", .address = 0x2000, .contents = frames.sections().eh_frame.bytes});
  elf.segment({.type = PT_LOAD, .flags = PF_R | PF_X, .of_section = ".text"});
  elf.segment({.type = PT_LOAD, .of_section = ".eh_frame"});
  return elf.build();
}

}  // namespace

TEST_CASE("the return from a signal is known also where it was written as a function") {
  const bool has_row = GENERATE(true, false);
  const auto file = std::make_shared<MemoryByteSource>(program_with_signal_return(has_row));
  const target::LoadedImage image(
      0, "/bin/a", file, elf::read_layout(*file).value(), {}, {},
      std::make_shared<elf::CfiBudget>(elf::CfiBudget{.bytes_left = 1 << 20}));
  const auto is_of_signal = [&image](uint64_t pc) {
    unwind::Row row;
    REQUIRE(image.row_at({pc}, row) == unwind::RowStatus::Found);
    return row.is_signal_frame;
  };
  CHECK_FALSE(is_of_signal(kBeforeReturn));
  CHECK_FALSE(is_of_signal(kBehindReturn - 1));  // the leaf may be at the function's `ret`
  CHECK(is_of_signal(kBehindReturn));
  CHECK(is_of_signal(kBehindReturn + 5));  // at its second instruction
  CHECK_FALSE(is_of_signal(kBehindReturn + 7));
}
