// From address to FDE: the linker's search table, where it can be trusted, and the own index.
#include "cfi_builder.h"
#include "elf/cfi_index.h"
#include "elf/cfi_search_table.h"
#include "elf/function_starts.h"
#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::elf_test;
using elf::CfiTable;
using unwind::RowStatus;

namespace {

constexpr uint64_t kEhFrameAddress = 0x2000;

struct TableEntry {
  uint64_t begin, fde_offset;
};

// .eh_frame_hdr as linkers write it: pointer pcrel sdata4, count udata4, table datarel sdata4.
elf::CfiSection header_of(const std::vector<TableEntry>& entries, uint32_t count) {
  ByteWriter header;
  header.u8(1).u8(0x1b).u8(0x03).u8(0x3b).u32(kEhFrameAddress - kHeaderAddress - 4).u32(count);
  for (const TableEntry& entry : entries) {
    header.u32(entry.begin - kHeaderAddress);
    header.u32(kEhFrameAddress + entry.fde_offset - kHeaderAddress);
  }
  return {{kHeaderAddress}, header.bytes()};
}

elf::CfiSection header_of(const std::vector<TableEntry>& entries) {
  return header_of(entries, static_cast<uint32_t>(entries.size()));
}

// FDEs over [0x1000, 0x1100), [0x1100, 0x1200), [0x1300, 0x1400) with CFA offsets 0x11, 0x12, 0x13,
// in another order in the file.
struct ThreeFdes {
  ThreeFdes() {
    builder.cie();
    third = builder.fde(0x1300, 0x100, {0x0e, 0x13});
    first = builder.fde(0x1000, 0x100, {0x0e, 0x11});
    second = builder.fde(0x1100, 0x100, {0x0e, 0x12});
  }
  std::vector<TableEntry> entries() const {
    return {{0x1000, first}, {0x1100, second}, {0x1300, third}};
  }
  CfiTable table(const elf::CfiSection& header = {}) const {
    elf::CfiSections sections = builder.sections();
    sections.eh_frame_hdr = header;
    return CfiTable(std::move(sections));
  }
  FrameBuilder builder;
  uint64_t first = 0, second = 0, third = 0;
};

// The CFA offset of the row at pc; minus the status where there is none.
int64_t cfa_offset_at(const CfiTable& table, uint64_t pc) {
  unwind::Row row;
  const RowStatus status = table.row_at({pc}, row);
  return status == RowStatus::Found ? row.cfa_offset : -static_cast<int64_t>(status);
}

constexpr int64_t kNoCfi = -static_cast<int64_t>(RowStatus::NoCfi);

void check_three_fdes(const CfiTable& table) {
  CHECK(cfa_offset_at(table, 0x1000) == 0x11);
  CHECK(cfa_offset_at(table, 0x10ff) == 0x11);
  CHECK(cfa_offset_at(table, 0x1100) == 0x12);
  CHECK(cfa_offset_at(table, 0x11ff) == 0x12);
  CHECK(cfa_offset_at(table, 0x1300) == 0x13);
  CHECK(cfa_offset_at(table, 0x13ff) == 0x13);
  CHECK(cfa_offset_at(table, 0x0fff) == kNoCfi);
  CHECK(cfa_offset_at(table, 0x1200) == kNoCfi);
  CHECK(cfa_offset_at(table, 0x12ff) == kNoCfi);
  CHECK(cfa_offset_at(table, 0x1400) == kNoCfi);
}

}  // namespace

TEST_CASE("FDEs are found without .eh_frame_hdr") { check_three_fdes(ThreeFdes().table()); }

TEST_CASE("FDEs and the gaps between them are found by .eh_frame_hdr, and no index is made") {
  const ThreeFdes fdes;
  const CfiTable table = fdes.table(header_of(fdes.entries()));
  const uint64_t memory_bytes = table.memory_bytes();
  for (const uint64_t pc : {0x1000, 0x11ff, 0x1300}) CHECK(cfa_offset_at(table, pc) > 0);
  for (const uint64_t pc : {0, 0xfff, 0x1200, 0x12ff, 0x1400}) {
    CHECK(cfa_offset_at(table, pc) == kNoCfi);
  }
  CHECK(table.memory_bytes() == memory_bytes);
  check_three_fdes(table);
}

TEST_CASE("What a sorted table leaves out is not found, as it is not by libgcc's unwinder") {
  const ThreeFdes fdes;
  const CfiTable table = fdes.table(header_of({{0x1000, fdes.first}, {0x1300, fdes.third}}));
  CHECK(cfa_offset_at(table, 0x10ff) == 0x11);
  CHECK(cfa_offset_at(table, 0x1100) == kNoCfi);
  CHECK(cfa_offset_at(table, 0x1300) == 0x13);
}

TEST_CASE("A search table of any length finds the last entry at or below an address") {
  for (const uint64_t count : {1, 2, 63, 64, 65, 128, 129, 200}) {
    std::vector<TableEntry> entries;
    for (uint64_t i = 0; i < count; ++i) entries.push_back({0x10000 + 16 * i, 32 * i});
    const elf::CfiSection section = header_of(entries);
    elf::FrameSection header;
    header.bytes = section.bytes;
    header.address = section.address;
    const auto table = elf::SearchTable::open(header);
    REQUIRE(table);
    CHECK_FALSE(table->find(0));
    CHECK_FALSE(table->find(0xffff));
    for (uint64_t i = 0; i < count; ++i) {
      for (const uint64_t pc : {entries[i].begin, entries[i].begin + 15}) {
        const auto found = table->find(pc);
        REQUIRE(found);
        REQUIRE(found->begin == entries[i].begin);
        REQUIRE(found->fde_address == kEhFrameAddress + 32 * i);
      }
    }
    CHECK(table->find(UINT32_MAX)->begin == entries.back().begin);
  }
}

TEST_CASE("With the first nonsense of .eh_frame_hdr an index is made") {
  const ThreeFdes fdes;
  const CfiTable table =
      fdes.table(header_of({{0x1000, fdes.first}, {0x1180, fdes.second}, {0x1300, fdes.third}}));
  const uint64_t memory_bytes = table.memory_bytes();
  CHECK(cfa_offset_at(table, 0x1200) == kNoCfi);
  CHECK(table.memory_bytes() == memory_bytes + 3 * 16);
  check_three_fdes(table);
}

TEST_CASE(
    "Function starts are those of the FDEs, by the table or the index, beyond the table's life") {
  const ThreeFdes fdes;
  const auto starts_after = [&](const elf::CfiSection& header, uint64_t asked_pc) {
    const CfiTable table = fdes.table(header);
    cfa_offset_at(table, asked_pc);
    return table.function_starts();
  };
  const elf::CfiSection header = header_of(fdes.entries());
  for (const auto& starts :
       {starts_after(header, 0x1000), starts_after(header, 0x1200), starts_after({}, 0x1000)}) {
    CHECK(starts->function_at({0x1000}) == elf::LinkRange{{0x1000}, {0x1100}});
    CHECK(starts->function_at({0x10ff})->begin == LinkAddress{0x1000});
    CHECK(starts->function_at({0x1100})->begin == LinkAddress{0x1100});
    CHECK(starts->function_at({0x13ff})->begin == LinkAddress{0x1300});
    for (const uint64_t pc : {0x0fff, 0x1200, 0x12ff, 0x1400}) {
      CHECK_FALSE(starts->function_at({pc}).has_value());
    }
  }
}

TEST_CASE("Function starts tell whether a function begins between two addresses") {
  const ThreeFdes fdes;
  const CfiTable asked = fdes.table();
  cfa_offset_at(asked, 0x1000);
  const auto by_index = asked.function_starts();
  const auto by_table = fdes.table(header_of(fdes.entries())).function_starts();
  for (const auto& starts : {by_index, by_table}) {
    CHECK_FALSE(starts->has_begin_in({0x1000}, {0x10ff}));
    CHECK_FALSE(starts->has_begin_in({0x1080}, {0x10ff}));
    CHECK(starts->has_begin_in({0x0fff}, {0x1000}));
    CHECK(starts->has_begin_in({0x1000}, {0x1100}));
    CHECK(starts->has_begin_in({0x1000}, {0x1280}));  // in a gap
    CHECK_FALSE(starts->has_begin_in({0x1100}, {0x12ff}));
    CHECK_FALSE(starts->has_begin_in({0x0800}, {0x0fff}));
    CHECK(starts->has_begin_in({0x1200}, {0x2000}));
  }
  CHECK_FALSE(fdes.table().function_starts()->has_begin_in({0x1000}, {0x1100}));
}

TEST_CASE("Function starts of ascending addresses are those of each one alone") {
  const ThreeFdes fdes;
  const auto starts = fdes.table(header_of(fdes.entries())).function_starts();
  elf::SortedFunctionStarts sorted(*starts);
  for (const uint64_t pc :
       {0x0fff, 0x1000, 0x1001, 0x10ff, 0x1100, 0x1200, 0x12ff, 0x1300, 0x1400}) {
    const auto function = starts->function_at({pc});
    CHECK(sorted.start_at({pc}) == (function ? std::optional(function->begin) : std::nullopt));
  }
}

TEST_CASE("Function starts of a table that was never asked: what the linker's table knows") {
  const ThreeFdes fdes;
  CHECK_FALSE(fdes.table().function_starts()->function_at({0x1000}).has_value());
  const auto starts = fdes.table(header_of({{0x1000, fdes.first}})).function_starts();
  CHECK(starts->function_at({0x1010})->begin == LinkAddress{0x1000});
  CHECK_FALSE(starts->function_at({0x1310}).has_value());
}

TEST_CASE(".eh_frame_hdr may have other encodings") {
  const ThreeFdes fdes;
  struct Kind {
    uint8_t encoding;
    unsigned bytes;
    uint64_t base;
    bool is_pc_relative;
  };
  for (const Kind& kind :
       {Kind{0x00, 8, 0, false}, Kind{0x04, 8, 0, false}, Kind{0x03, 4, 0, false},
        Kind{0x0c, 8, 0, false}, Kind{0x33, 4, kHeaderAddress, false},
        Kind{0x3a, 2, kHeaderAddress, false}, Kind{0x1b, 4, 0, true}, Kind{0x1c, 8, 0, true}}) {
    CAPTURE(int{kind.encoding});
    ByteWriter header;
    header.u8(1).u8(0x00).u8(0x04).u8(kind.encoding).u64(kEhFrameAddress).u64(3);
    const auto put = [&](uint64_t address) {
      const uint64_t base = kind.is_pc_relative ? kHeaderAddress + header.size() : kind.base;
      for (unsigned i = 0; i < kind.bytes; ++i) header.u8((address - base) >> (8 * i) & 0xff);
    };
    for (const TableEntry& entry : fdes.entries()) {
      // A table of udata4 offsets from the header can only name what is above it.
      put(kind.encoding == 0x33 ? std::max(entry.begin, kHeaderAddress) : entry.begin);
      put(kEhFrameAddress + entry.fde_offset);
    }
    const CfiTable table = fdes.table({{kHeaderAddress}, header.bytes()});
    const uint64_t memory_bytes = table.memory_bytes();
    if (kind.encoding != 0x33) {
      CHECK(cfa_offset_at(table, 0x1150) == 0x12);
      CHECK(table.memory_bytes() == memory_bytes);
    }
    check_three_fdes(table);
  }
}

TEST_CASE("a table that lies does not hide an FDE") {
  const ThreeFdes fdes;
  const std::vector<TableEntry> lies[] = {
      {{0x1300, fdes.third}, {0x1000, fdes.first}, {0x1100, fdes.second}},      // unsorted
      {{0x1000, fdes.third}, {0x1100, fdes.first}, {0x1300, fdes.second}},      // mixed up
      {{0x1000, 0}, {0x1100, 0}, {0x1300, 0}},                                  // a CIE
      {{0x1000, fdes.first + 3}, {0x1100, fdes.second - 1}, {0x1300, 0x9999}},  // inside, outside
      {{0x1080, fdes.first}, {0x1180, fdes.second}, {0x1380, fdes.third}},      // too high
      {{0x1000, ~uint64_t{0x2000}}, {0x1100, fdes.second}, {0x1300, 0x7fffffff}}};
  for (const std::vector<TableEntry>& entries : lies) {
    check_three_fdes(fdes.table(header_of(entries)));
  }
}

TEST_CASE("a table longer than its section, empty, cut off or of another kind is not used") {
  const ThreeFdes fdes;
  check_three_fdes(fdes.table(header_of(fdes.entries(), 4)));
  check_three_fdes(fdes.table(header_of(fdes.entries(), 0xffffffff)));
  check_three_fdes(fdes.table(header_of({})));
  const elf::CfiSection good = header_of(fdes.entries());
  for (size_t size = 0; size < good.bytes.size(); ++size) {
    elf::CfiSection cut_off = good;
    cut_off.bytes.resize(size);
    check_three_fdes(fdes.table(cut_off));
  }
  for (size_t i = 0; i < 4; ++i) {  // version and encodings
    for (const int value : {0, 2, 0x01, 0x80, 0x9b, 0xff, 0x2b, 0x4b, 0x50}) {
      elf::CfiSection other = good;
      other.bytes[i] = static_cast<std::byte>(value);
      check_three_fdes(fdes.table(other));
    }
  }
}

TEST_CASE("an index serves where FDEs overlap") {
  FrameBuilder builder;
  builder.cie();
  builder.fde(0x1000, 0x1000, {0x0e, 0x11});
  builder.fde(0x1400, 0x100, {0x0e, 0x12});
  builder.fde(0x1400, 0x80, {0x0e, 0x13});
  const CfiTable table(builder.sections());
  CHECK(cfa_offset_at(table, 0x1000) == 0x11);
  CHECK(cfa_offset_at(table, 0x1410) == 0x12);
  CHECK(cfa_offset_at(table, 0x1500) == 0x11);
  CHECK(cfa_offset_at(table, 0x1fff) == 0x11);
  CHECK(cfa_offset_at(table, 0x2000) == kNoCfi);
}

TEST_CASE("an FDE of more than 4 GiB is found") {
  FrameBuilder builder;
  builder.cie();
  builder.fde(0x1000, 0x3'0000'0000, {0x0e, 0x11});
  const CfiTable table(builder.sections());
  CHECK(cfa_offset_at(table, 0x2'0000'0000) == 0x11);
  CHECK(cfa_offset_at(table, 0x3'0000'1000) == kNoCfi);
}

TEST_CASE("an index reads at most as many entries as it is told, and says that some are missing") {
  const ThreeFdes fdes;
  const elf::CfiSections sections = fdes.builder.sections();
  elf::FrameSection section;
  section.bytes = sections.eh_frame.bytes;
  section.address = {kEhFrameAddress};
  elf::FdeIndex whole;
  whole.build(section, 4);
  CHECK(whole.problem() == elf::CfiStatus::Ok);
  CHECK(whole.find(0x1000) == fdes.first);
  elf::FdeIndex cut_off;
  cut_off.build(section, 3);
  CHECK(cut_off.problem() == elf::CfiStatus::Unsupported);
  CHECK(cut_off.find(0x1300) == fdes.third);
  CHECK_FALSE(cut_off.find(0x1100).has_value());
  CHECK(cut_off.memory_bytes() == 2 * 16);
}

TEST_CASE("FDEs that cover nothing count towards the limit of an index, and so does what is none") {
  FrameBuilder builder;
  builder.cie();
  for (int i = 0; i < 5; ++i) builder.fde(0x1000, 0);
  builder.raw({0, 0, 0, 0});
  builder.fde(0x2000, 0x100);
  const elf::CfiSections sections = builder.sections();
  elf::FrameSection section;
  section.bytes = sections.eh_frame.bytes;
  elf::FdeIndex whole;
  whole.build(section, 8);
  CHECK(whole.problem() == elf::CfiStatus::Ok);
  CHECK(whole.find(0x2000).has_value());
  elf::FdeIndex cut_off;
  cut_off.build(section, 7);
  CHECK(cut_off.problem() == elf::CfiStatus::Unsupported);
  CHECK_FALSE(cut_off.find(0x2000).has_value());
}

TEST_CASE(
    "an FDE that cannot be read hides no other, and leaves frame pointers to what misses it") {
  FrameBuilder builder;
  builder.cie({.augmentation = "zRx", .augmentation_data = {0}});
  builder.fde(0x1000, 0x100);
  builder.cie();
  builder.fde(0x2000, 0x100, {0x0e, 0x12});
  const CfiTable table(builder.sections());
  CHECK(cfa_offset_at(table, 0x2000) == 0x12);
  CHECK(cfa_offset_at(table, 0x1000) == kNoCfi);
  CHECK(cfa_offset_at(table, 0x3000) == kNoCfi);
}

TEST_CASE("a section that breaks off in its middle makes a miss malformed") {
  FrameBuilder builder;
  builder.cie();
  builder.fde(0x2000, 0x100, {0x0e, 0x12});
  builder.raw({0xf0, 0xff, 0xff, 0xff});
  const CfiTable table(builder.sections());
  CHECK(cfa_offset_at(table, 0x2000) == 0x12);
  unwind::Row row;
  CHECK(table.row_at({0x3000}, row) == RowStatus::Malformed);
  CHECK(table.problem() == ".eh_frame cannot be read to its end");
}

TEST_CASE("an .eh_frame that breaks off loses no FDE that the linker's table knows") {
  ThreeFdes fdes;
  fdes.builder.raw({0xf0, 0xff, 0xff, 0xff});
  const uint64_t behind = fdes.builder.fde(0x2000, 0x100, {0x0e, 0x14});
  std::vector<TableEntry> entries = fdes.entries();
  entries[1].fde_offset = 1;  // the nonsense for which an index is made
  entries.push_back({0x2000, behind});
  const CfiTable table = fdes.table(header_of(entries));
  CHECK(cfa_offset_at(table, 0x1100) == 0x12);
  CHECK(cfa_offset_at(table, 0x2000) == 0x14);
  CHECK(table.function_starts()->function_at({0x2000}) == elf::LinkRange{{0x2000}, {0x2100}});
  CHECK(table.function_starts()->has_begin_in({0x1fff}, {0x2000}));
}

TEST_CASE("a .debug_frame that breaks off says nothing of what it does not cover, which is told") {
  FrameBuilder builder({.is_eh_frame = false});
  builder.cie({.augmentation = "", .augmentation_data = {}});
  builder.fde(0x2000, 0x100, {0x0e, 0x12});
  builder.raw({0xf0, 0xff, 0xff, 0xff});
  const CfiTable table(builder.sections());
  CHECK(table.problem().empty());
  CHECK(cfa_offset_at(table, 0x3000) == kNoCfi);
  CHECK(cfa_offset_at(table, 0x2000) == 0x12);
  CHECK(table.problem() == ".debug_frame cannot be read to its end");
}

TEST_CASE(".eh_frame is asked first, then .debug_frame") {
  FrameBuilder eh_frame;
  eh_frame.cie();
  eh_frame.fde(0x1000, 0x100, {0x0e, 0x11});
  eh_frame.fde(0x1100, 0x100, {0x3f});
  FrameBuilder debug_frame({.is_eh_frame = false});
  debug_frame.cie({.augmentation = "", .augmentation_data = {}});
  debug_frame.fde(0x1000, 0x100, {0x0e, 0x21});
  debug_frame.fde(0x1100, 0x100, {0x0e, 0x22});
  debug_frame.fde(0x1200, 0x100, {0x0e, 0x23});
  elf::CfiSections sections = eh_frame.sections();
  sections.debug_frame = debug_frame.sections().debug_frame;
  const CfiTable table(std::move(sections));
  CHECK(cfa_offset_at(table, 0x1000) == 0x11);
  CHECK(cfa_offset_at(table, 0x1100) == 0x22);
  CHECK(cfa_offset_at(table, 0x1200) == 0x23);
  CHECK(cfa_offset_at(table, 0x1300) == kNoCfi);

  std::vector<uint64_t> begins;
  table.for_each_fde([&](LinkAddress begin, LinkAddress end) {
    CHECK(end.value == begin.value + 0x100);
    begins.push_back(begin.value);
  });
  CHECK(begins == std::vector<uint64_t>{0x1000, 0x1100, 0x1000, 0x1100, 0x1200});
}

TEST_CASE("an index is made of what is left for all images, and what was found before holds") {
  const ThreeFdes fdes;
  elf::CfiSections sections = fdes.builder.sections();
  // The linker's table knows the first, lies about the second, and has no third.
  sections.eh_frame_hdr = header_of({{0x1000, fdes.first}, {0x1100, fdes.first}});
  auto budget = std::make_shared<elf::CfiBudget>();
  budget->indexable_entries_left = 3;
  const CfiTable table(std::move(sections), budget);
  CHECK(cfa_offset_at(table, 0x1000) == 0x11);
  CHECK(table.problem().empty());

  unwind::Row row;
  CHECK(table.row_at({0x1100}, row) == RowStatus::NoCfi);
  CHECK(row.is_provisional);
  CHECK(table.problem().starts_with("its index is larger"));
  CHECK(budget->indexable_entries_left == 0);  // they were read
  CHECK(cfa_offset_at(table, 0x1000) == 0x11);

  budget->indexable_entries_left = 3;  // too few again: they are not read again
  CHECK(cfa_offset_at(table, 0x1100) == kNoCfi);
  CHECK(budget->indexable_entries_left == 3);
  budget->bytes_left = 3 * elf::FdeIndex::kItem_bytes;
  budget->indexable_entries_left = 100;
  CHECK(cfa_offset_at(table, 0x1100) == kNoCfi);

  budget->bytes_left = 1000;
  unwind::Row found;
  CHECK(table.row_at({0x1100}, found) == RowStatus::Found);
  CHECK_FALSE(found.is_provisional);
  CHECK(table.problem().empty());
  check_three_fdes(table);
}

TEST_CASE("what follows an entry point that has an FDE is another function, and no root") {
  elf::CfiSections sections = ThreeFdes().builder.sections();
  sections.entry = {0x11f0};
  CHECK(cfa_offset_at(CfiTable(sections), 0x1200) == kNoCfi);
}

TEST_CASE("up to 63 bytes behind the entry point is the root, unless CFI says otherwise") {
  FrameBuilder builder;
  builder.cie();
  builder.fde(0x1010, 0x10, {0x0e, 0x11});
  elf::CfiSections sections = builder.sections();
  sections.entry = {0x1000};
  const CfiTable table(std::move(sections));
  unwind::Row row;
  CHECK(table.row_at({0x0fff}, row) == RowStatus::NoCfi);
  CHECK(table.row_at({0x1000}, row) == RowStatus::Root);
  CHECK(table.row_at({0x1010}, row) == RowStatus::Found);
  CHECK(table.row_at({0x103f}, row) == RowStatus::Root);
  CHECK(table.row_at({0x1040}, row) == RowStatus::NoCfi);

  CHECK(CfiTable({.entry = {0x1000}}).row_at({0x1000}, row) == RowStatus::Root);
  CHECK(CfiTable({}).row_at({0x0000}, row) == RowStatus::NoCfi);
}
