#include "symbols/symbol_names.h"

#include "support/catch2.h"
#include "support/elf_builder.h"
#include "support/go_table_builder.h"
#include "support/packed.h"
#include "unit/elf/cfi_builder.h"

#include <algorithm>
#include <memory>

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

constexpr uint64_t kText = 0x1000, kText_bytes = 0x800;

const ElfKind kKinds[] = {
    {.machine = EM_X86_64, .is_64_bit = true, .order = std::endian::little},
    {.machine = EM_386, .is_64_bit = false, .order = std::endian::little},
    {.machine = EM_PPC64, .is_64_bit = true, .order = std::endian::big},
    {.machine = EM_MIPS, .is_64_bit = false, .order = std::endian::big},
};

// A file with .text at 0x1000 and one symbol table.
std::vector<std::byte> with_symbols(const std::vector<SymbolTableBuilder::Symbol>& symbols,
                                    ElfKind kind = {}, uint32_t table_type = SHT_SYMTAB,
                                    size_t text_bytes = kText_bytes) {
  SymbolTableBuilder table(kind);
  for (const auto& symbol : symbols) table.add(symbol);
  ElfBuilder elf(kind);
  elf.section({.name = ".text", .address = kText, .contents = std::vector<std::byte>(text_bytes)});
  elf.section({.name = ".sym", .type = table_type, .contents = table.symbols(), .link = ".str"});
  elf.section({.name = ".str", .type = SHT_STRTAB, .contents = table.strings()});
  // The executable segment begins before .text, as .init and .plt do.
  elf.segment(
      {.flags = PF_R | PF_X, .vaddr = 0x800, .file_bytes = 1, .memory_bytes = 0x800 + text_bytes});
  return elf.build();
}

std::vector<std::string> names(const std::vector<std::byte>& bytes,
                               const std::vector<uint64_t>& addresses,
                               symbols::SymbolBudget& budget,
                               const elf::FunctionStarts* function_starts = nullptr) {
  const MemoryByteSource file(bytes);
  std::vector<LinkAddress> sorted;
  for (uint64_t address : addresses) sorted.push_back({address});
  std::vector<std::string> result;
  for (const auto& name :
       symbols::names_at(file, elf::read_layout(file).value(), sorted, budget, function_starts)) {
    result.push_back(name.value_or("-"));
  }
  return result;
}

std::vector<std::string> names(const std::vector<std::byte>& bytes,
                               const std::vector<uint64_t>& addresses) {
  symbols::SymbolBudget budget;
  return names(bytes, addresses, budget);
}

using Names = std::vector<std::string>;

SymbolTableBuilder::Symbol function(std::string name, uint64_t value, uint64_t size_bytes,
                                    uint8_t binding = STB_GLOBAL) {
  return {std::move(name), value, size_bytes, STT_FUNC, binding, 1};
}

}  // namespace

TEST_CASE("names_at finds functions in every class and byte order, in .symtab and .dynsym") {
  for (const ElfKind& kind : kKinds) {
    for (uint32_t table : {SHT_SYMTAB, SHT_DYNSYM}) {
      const auto file = with_symbols(
          {function("second", 0x1100, 0x10), function("_Z5firstv", 0x1000, 0x20)}, kind, table);
      CHECK(names(file, {0xfff, 0x1000, 0x101f, 0x1020, 0x1100, 0x110f, 0x1110}) ==
            Names{"-", "first()", "first()", "-", "second", "second", "-"});
    }
  }
}

namespace {

// With "exported" at 0x1100 in .dynsym.
std::vector<std::byte> image_with_debugdata(const PackedBytes& debugdata) {
  SymbolTableBuilder dynamic;
  dynamic.add(function("exported", 0x1100, 0x10));
  ElfBuilder elf;
  elf.section(
      {.name = ".dynsym", .type = SHT_DYNSYM, .contents = dynamic.symbols(), .link = ".dynstr"});
  elf.section({.name = ".dynstr", .type = SHT_STRTAB, .contents = dynamic.strings()});
  elf.section({.name = ".gnu_debugdata", .flags = 0, .contents = debugdata});
  elf.segment({.flags = PF_R | PF_X, .vaddr = 0x800, .file_bytes = 1, .memory_bytes = 0x1800});
  return elf.build();
}

}  // namespace

TEST_CASE("names that .dynsym has not are in MiniDebugInfo") {
  const auto stripped = with_symbols({function("hidden", 0x1000, 0x10)});
  CHECK(names(image_with_debugdata(xz_packed(stripped)), {0x1004, 0x1104, 0x1200}) ==
        Names{"hidden", "exported", "-"});
  CHECK(names(image_with_debugdata(PackedBytes(100)), {0x1004, 0x1104}) == Names{"-", "exported"});
}

TEST_CASE("a debug file has the names that were stripped, and better ones than .dynsym's labels") {
  SymbolTableBuilder dynamic;
  dynamic.add(function("exported", 0x1100, 0x10));
  dynamic.add({"label", 0x1200, 0, STT_NOTYPE, STB_GLOBAL, 1});
  ElfBuilder elf;
  elf.section({.name = ".text", .address = kText, .contents = std::vector<std::byte>(0x400)});
  elf.section(
      {.name = ".dynsym", .type = SHT_DYNSYM, .contents = dynamic.symbols(), .link = ".dynstr"});
  elf.section({.name = ".dynstr", .type = SHT_STRTAB, .contents = dynamic.strings()});
  elf.segment({.flags = PF_R | PF_X, .of_section = ".text"});
  const MemoryByteSource file(elf.build());
  const MemoryByteSource debug_file(
      with_symbols({function("hidden", 0x1000, 0x10), function("in_assembly", 0x1200, 0x10)}));
  const std::vector<LinkAddress> addresses = {{0x1004}, {0x1104}, {0x1204}, {0x1300}};
  symbols::SymbolBudget budget;
  const auto names = symbols::names_at(
      file, elf::read_layout(file).value(), addresses, budget, nullptr,
      symbols::DebugSymbols{debug_file, *elf::read_layout(debug_file).value().symtab});
  CHECK(names[0] == "hidden");
  CHECK(names[1] == "exported");
  CHECK(names[2] == "in_assembly");
  CHECK(names[3] == "label");
}

TEST_CASE("what a .symtab of a few symbols has not is in .dynsym") {
  SymbolTableBuilder kept, dynamic;
  kept.add(function("kept", 0x1000, 0x10));
  dynamic.add(function("alias_of_kept", 0x1000, 0x10));
  dynamic.add(function("exported", 0x1100, 0x10));
  ElfBuilder elf;
  elf.section(
      {.name = ".symtab", .type = SHT_SYMTAB, .contents = kept.symbols(), .link = ".strtab"});
  elf.section({.name = ".strtab", .type = SHT_STRTAB, .contents = kept.strings()});
  elf.section(
      {.name = ".dynsym", .type = SHT_DYNSYM, .contents = dynamic.symbols(), .link = ".dynstr"});
  elf.section({.name = ".dynstr", .type = SHT_STRTAB, .contents = dynamic.strings()});
  elf.segment({.flags = PF_R | PF_X, .vaddr = 0x800, .file_bytes = 1, .memory_bytes = 0x1800});
  CHECK(names(elf.build(), {0x1004, 0x1104, 0x1200}) == Names{"kept", "exported", "-"});
}

TEST_CASE("a label of MiniDebugInfo does not reach over a function of .dynsym") {
  const auto stripped = with_symbols(
      {{"label", 0x1000, 0, STT_NOTYPE, STB_LOCAL, 1}, function("hidden", 0x1200, 0x10)});
  SymbolTableBuilder dynamic;
  dynamic.add(function("exported", 0x1010, 0x10));
  ElfBuilder elf;
  elf.section(
      {.name = ".dynsym", .type = SHT_DYNSYM, .contents = dynamic.symbols(), .link = ".dynstr"});
  elf.section({.name = ".dynstr", .type = SHT_STRTAB, .contents = dynamic.strings()});
  elf.section({.name = ".gnu_debugdata", .flags = 0, .contents = xz_packed(stripped)});
  elf.segment({.flags = PF_R | PF_X, .vaddr = 0x800, .file_bytes = 1, .memory_bytes = 0x1800});
  CHECK(names(elf.build(), {0x1004, 0x1014, 0x1204}) == Names{"label", "exported", "hidden"});
}

TEST_CASE("names_at names the functions of a Go program without symbols") {
  const std::string longest(2000, 'x');
  const auto image = go_image(go_table({{"main.main", 0x40, 0, {{0x40, 0}}},
                                        {"main.(*tree).grow", 0x40, 0, {{0x40, 8}}},
                                        {longest, 0x40, 0, {{0x40, 8}}}}));
  CHECK(names(image, {0xfff, 0x1000, 0x103f, 0x1040, 0x10c0}) ==
        Names{"-", "main.main", "main.main", "main.(*tree).grow", "-"});
  CHECK(names(image, {0x1080})[0].size() <= 1024);
}

TEST_CASE("names_at prefers the inner symbol, then the binding") {
  const auto file = with_symbols({
      function("outer", 0x1000, 0x100),
      function("inner", 0x1040, 0x10, STB_LOCAL),
      function("local", 0x1200, 0x10, STB_LOCAL),
      function("weak", 0x1200, 0x10, STB_WEAK),
      function("global", 0x1200, 0x10),
      function("another", 0x1200, 0x10),
      {"label", 0x1300, 0x10, STT_NOTYPE, STB_GLOBAL, 1},
      function("function", 0x1300, 0x10, STB_LOCAL),
      {"resolver", 0x1400, 0x10, STT_GNU_IFUNC, STB_GLOBAL, 1},
  });
  CHECK(names(file, {0x1000, 0x1040, 0x1050, 0x1208, 0x1300, 0x1400}) ==
        Names{"outer", "inner", "outer", "global", "function", "resolver"});
}

TEST_CASE("names_at prefers the alias with fewer underscores in front") {
  const auto file = with_symbols({
      function("__strtok_r", 0x1000, 0x10),
      function("strtok_r", 0x1000, 0x10),
      function("malloc", 0x1010, 0x10),
      function("__libc_malloc", 0x1010, 0x10),
      function("_exit", 0x1020, 0x10),
      function("_Exit", 0x1020, 0x10),
  });
  CHECK(names(file, {0x1000, 0x1010, 0x1020}) == Names{"strtok_r", "malloc", "_exit"});
}

TEST_CASE("names_at prefers the plainest of several aliases, whatever their bindings and order") {
  const auto file = with_symbols({
      function("cfree", 0x1000, 0x10),
      function("__libc_free", 0x1000, 0x10),
      function("free", 0x1000, 0x10),
      function("__free", 0x1000, 0x10),
      function("__libc_calloc", 0x1010, 0x10),
      function("calloc", 0x1010, 0x10, STB_WEAK),
      function("__open64", 0x1020, 0x10),
      function("open64", 0x1020, 0x10, STB_WEAK),
      function("open", 0x1020, 0x10, STB_WEAK),
      function("__open", 0x1020, 0x10, STB_WEAK),
  });
  CHECK(names(file, {0x1000, 0x1010, 0x1020}) == Names{"free", "calloc", "open"});
}

TEST_CASE("names_at does not count a symbol's version when it looks for the plainest alias") {
  const auto file =
      with_symbols({function("open64", 0x1000, 0x10), function("open@@V_2", 0x1000, 0x10)});
  CHECK(names(file, {0x1000}) == Names{"open"});
}

TEST_CASE(
    "of equally plain aliases names_at has the one that comes first, wherever its string is") {
  const auto names_with = [](const char* first, const char* second) {
    return names(with_symbols({function(first, 0x1000, 0x10), function(second, 0x1000, 0x10),
                               function("abc", 0x1010, 1), function("xyz", 0x1011, 1)}),
                 {0x1000});
  };
  CHECK(names_with("abc", "xyz") == Names{"abc"});
  CHECK(names_with("xyz", "abc") == Names{"xyz"});
}

TEST_CASE("names_at shortens a long name") {
  const auto file = with_symbols({function(std::string(300, 'a'), 0x1000, 0x10),
                                  function(std::string(1025, 'b'), 0x1010, 0x10),
                                  function(std::string(5000, 'c'), 0x1020, 0x10)});
  const std::string dots = "\xe2\x80\xa6";
  CHECK(names(file, {0x1000, 0x1010, 0x1020}) ==
        Names{std::string(300, 'a'), std::string(253, 'b') + dots + std::string(768, 'b'),
              std::string(253, 'c') + dots + std::string(768, 'c')});
}

TEST_CASE("methods of one class with a long name keep names of their own") {
  const std::string of_class(2000, 'x');
  const auto file = with_symbols(
      {function(of_class + "::visit", 0x1000, 0x10), function(of_class + "::other", 0x1010, 0x10)});
  const Names shown = names(file, {0x1000, 0x1010});
  CHECK(shown[0].ends_with("::visit"));
  CHECK(shown[1].ends_with("::other"));
}

TEST_CASE("names_at lets a symbol without size reach to the next symbol of .text") {
  const auto file = with_symbols({
      function("_init", 0x900, 0),  // outside .text, in front of the PLT
      function("assembly", 0x1000, 0),
      {"label", 0x1020, 0, STT_NOTYPE, STB_LOCAL, 1},
      function("sized", 0x1040, 0x10),
      {"object", 0x1060, 0, STT_OBJECT, STB_GLOBAL, 1},
  });
  CHECK(names(file, {0x980, 0x1000, 0x101f, 0x1030, 0x1048, 0x1050, 0x1070}) ==
        Names{"-", "assembly", "assembly", "label", "sized", "-", "-"});
}

TEST_CASE("names_at lets a symbol without size reach no farther than functions are long") {
  const auto file = with_symbols(
      {{"exported_label", 0x1000, 0, STT_NOTYPE, STB_GLOBAL, 1}, function("sized", 0x2800, 0x1800)},
      {}, SHT_DYNSYM, 0x8000);
  CHECK(names(file, {0x1000, 0x1fff, 0x2000, 0x27ff, 0x3fff}) ==
        Names{"exported_label", "exported_label", "-", "-", "sized"});
}

namespace {

// Of unwind tables with an FDE of 16 bytes at each of these.
std::shared_ptr<const elf::FunctionStarts> fdes_at(const std::vector<uint64_t>& begins) {
  elf_test::FrameBuilder frames;
  frames.cie();
  for (const uint64_t begin : begins) frames.fde(begin, 0x10);
  const elf::CfiTable table(frames.sections());
  unwind::Row row;
  table.row_at({begins.front()}, row);  // makes the index
  return table.function_starts();
}

Names names_beside_fdes(const std::vector<std::byte>& bytes, const std::vector<uint64_t>& addresses,
                        const std::vector<uint64_t>& fde_begins) {
  symbols::SymbolBudget budget;
  return names(bytes, addresses, budget, fdes_at(fde_begins).get());
}

}  // namespace

TEST_CASE("names_at lets a symbol without size reach over no function of the unwind tables") {
  const auto file = with_symbols(
      {{"assembly", 0x1000, 0, STT_NOTYPE, STB_GLOBAL, 1}, function("sized", 0x1100, 0x10)});
  // Nor where no FDE covers the address: what begins there is not known.
  CHECK(
      names_beside_fdes(file, {0x1000, 0x103f, 0x1040, 0x104f, 0x1050, 0x1104}, {0x1040, 0x1100}) ==
      Names{"assembly", "assembly", "-", "-", "-", "sized"});
}

TEST_CASE("names_at has the names of all labels that stand in one function of the unwind tables") {
  const auto file = with_symbols({{"entry", 0x1000, 0, STT_NOTYPE, STB_GLOBAL, 1},
                                  {"loop", 0x1004, 0, STT_NOTYPE, STB_LOCAL, 1},
                                  function("in_nop_before", 0x1011, 0)});
  CHECK(names_beside_fdes(file, {0x1000, 0x100f, 0x1011, 0x101f}, {0x1000, 0x1010}) ==
        Names{"entry", "loop", "in_nop_before", "in_nop_before"});
}

TEST_CASE("names_at asks no unwind tables about functions with a size") {
  const auto file = with_symbols({function("sized", 0x1000, 0x100)});
  CHECK(names_beside_fdes(file, {0x1050}, {0x1000, 0x1040}) == Names{"sized"});
}

TEST_CASE("names_at names nothing by gcc's start-up functions, which have no size") {
  const auto file = with_symbols({function("frame_dummy", 0x1000, 0, STB_LOCAL),
                                  function("hidden_assembly", 0x1100, 0, STB_LOCAL),
                                  function("assembly", 0x1200, 0),
                                  function("frame_dummy", 0x1300, 0x10, STB_LOCAL)});
  CHECK(names(file, {0x1000, 0x10ff, 0x1100, 0x11ff, 0x12ff, 0x1300}) ==
        Names{"-", "-", "hidden_assembly", "hidden_assembly", "assembly", "frame_dummy"});
}

TEST_CASE("names_at knows the code that signal handlers return to behind another label") {
  const auto file_with = [](const SymbolTableBuilder::Symbol& symbol) {
    // ret; nop; mov $15,%rax; syscall
    ByteWriter code;
    code.text("\xc3\x90\x48\xc7\xc0").u32(15).u8(0x0f).u8(0x05);
    SymbolTableBuilder table;
    table.add(symbol);
    ElfBuilder elf;
    elf.section({.name = ".text", .address = kText, .contents = code.bytes()});
    elf.section({.name = ".sym", .type = SHT_SYMTAB, .contents = table.symbols(), .link = ".str"});
    elf.section({.name = ".str", .type = SHT_STRTAB, .contents = table.strings()});
    elf.segment({.flags = PF_R | PF_X, .of_section = ".text"});
    return elf.build();
  };
  // 0x1001 is where a return to 0x1002 is looked up.
  const std::vector<uint64_t> addresses = {0x1000, 0x1001, 0x1002, 0x1009};
  CHECK(names(file_with(function("setjmp", 0x1000, 0)), addresses) ==
        Names{"setjmp", "__restore_rt", "__restore_rt", "__restore_rt"});
  CHECK(names(file_with(function("sized", 0x1000, 0x10)), addresses) ==
        Names{"sized", "sized", "sized", "sized"});
}

TEST_CASE("names_at passes over symbols that name no code") {
  const auto file = with_symbols({
      {"undefined", 0x1000, 0x10, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
      {"absolute", 0x1000, 0x10, STT_NOTYPE, STB_GLOBAL, SHN_ABS},
      {"object", 0x1000, 0x10, STT_OBJECT, STB_GLOBAL, 1},
      {"", 0x1000, 0x10, STT_FUNC, STB_GLOBAL, 1},
  });
  CHECK(names(file, {0x1000}) == Names{"-"});
  const ElfKind arm{.machine = EM_ARM, .is_64_bit = false};
  const auto thumb = with_symbols({function("thumb", 0x1001, 0x10),
                                   {"$t", 0x1000, 0, STT_NOTYPE, STB_LOCAL, 1},
                                   {"$d", 0x1010, 0, STT_NOTYPE, STB_LOCAL, 1}},
                                  arm);
  CHECK(names(thumb, {0x1000, 0x1010}) == Names{"thumb", "-"});
}

TEST_CASE("names_at leaves out symbol versions and keeps the compiler's suffixes") {
  const auto file =
      with_symbols({function("open@@V_2", 0x1000, 0x10), function("work.part.0", 0x1010, 0x10)});
  CHECK(names(file, {0x1000, 0x1010}) == Names{"open", "work.part.0"});
}

TEST_CASE("names_at has no name for strings that are cut off or outside the table") {
  ElfBuilder elf;
  SymbolTableBuilder table;
  table.add(function("unterminated", 0x1000, 0x10));
  auto strings = table.strings();
  strings.pop_back();
  elf.section({.name = ".sym", .type = SHT_SYMTAB, .contents = table.symbols(), .link = ".str"});
  elf.section({.name = ".str", .type = SHT_STRTAB, .contents = strings});
  CHECK(names(elf.build(), {0x1000}) == Names{"-"});
}

TEST_CASE("names_at reads tables of more than one piece") {
  std::vector<SymbolTableBuilder::Symbol> symbols;
  std::vector<uint64_t> addresses;
  Names expected;
  for (uint64_t i = 0; i < 10'000; ++i) {
    symbols.push_back(function(std::string("f").append(std::to_string(i)), 0x10000 + 16 * i, 16));
    addresses.push_back(0x10000 + 16 * i + 15);
    expected.push_back(symbols.back().name);
  }
  std::reverse(symbols.begin(), symbols.end());
  CHECK(names(with_symbols(symbols), addresses) == expected);
}

TEST_CASE("names_at ends on a table whose symbols all hold all addresses") {
  std::vector<SymbolTableBuilder::Symbol> symbols(60'000, function("all", 1, UINT32_MAX));
  std::vector<uint64_t> addresses;
  for (uint64_t i = 0; i < 60'000; ++i) addresses.push_back(0x1000 + i);
  symbols::SymbolBudget budget;
  CHECK(names(with_symbols(symbols), addresses, budget).front() == "all");
  CHECK(budget.tables_cut == 1);
}

TEST_CASE("names_at counts a table that is larger than any real one") {
  const MemoryByteSource file(with_symbols({function("f", 0x1000, 0x10)}));
  elf::Layout layout = elf::read_layout(file).value();
  layout.symtab->symbols.size_bytes = uint64_t{385} << 20;
  symbols::SymbolBudget budget;
  symbols::names_at(file, layout, std::vector<LinkAddress>{{0x1000}}, budget);
  CHECK(budget.tables_cut == 1);
}

TEST_CASE("names_at reads the tables of all images up to a common bound, and counts what is cut") {
  const auto file =
      with_symbols({function("first", 0x1000, 0x10), function("second", 0x1010, 0x10)});
  symbols::SymbolBudget budget;
  budget.table_bytes = 5 * sizeof(Elf64_Sym);  // there is an empty first entry
  CHECK(names(file, {0x1000, 0x1010}, budget) == Names{"first", "second"});
  CHECK(budget.tables_cut == 0);
  CHECK(names(file, {0x1000, 0x1010}, budget) == Names{"first", "-"});
  CHECK(budget.tables_cut == 1);
  CHECK(names(file, {0x1000, 0x1010}, budget) == Names{"-", "-"});
  CHECK(budget.tables_cut == 2);
}

TEST_CASE("names_at demangles as long as the budget lasts, and counts the names left mangled") {
  const auto file = with_symbols({function("_Z1av", 0x1000, 0x10), function("_Z1bv", 0x1010, 0x10),
                                  function("_Z1cv", 0x1020, 0x10), function("d", 0x1030, 0x10)});
  symbols::SymbolBudget budget;
  budget.demangling_ns = 100;
  budget.now_ns = [] {
    static uint64_t now_ns = 0;
    return now_ns += 50;
  };
  CHECK(names(file, {0x1000, 0x1010, 0x1020, 0x1030}, budget) == Names{"a()", "b()", "_Z1cv", "d"});
  CHECK(budget.names_left_mangled == 1);
  CHECK(budget.tables_cut == 0);
}

TEST_CASE("names_at unpacks MiniDebugInfo up to a common bound, and counts what is left") {
  const auto stripped = with_symbols({function("hidden", 0x1000, 0x10)});
  const auto packed = xz_packed(stripped);
  const auto file = image_with_debugdata(packed);
  symbols::SymbolBudget budget;
  budget.unpacked_bytes = packed.size() + stripped.size() + 100;
  CHECK(names(file, {0x1000}, budget) == Names{"hidden"});
  CHECK(budget.unpacked_bytes == 100);
  CHECK(budget.tables_cut == 0);
  CHECK(names(file, {0x1000, 0x1100}, budget) == Names{"-", "exported"});
  CHECK(budget.tables_cut == 1);
}

TEST_CASE("names_at gives nothing without a symbol table or without addresses") {
  CHECK(names(ElfBuilder().build(), {0x1000}) == Names{"-"});
  CHECK(names(with_symbols({function("f", 0x1000, 1)}), {}).empty());
}
