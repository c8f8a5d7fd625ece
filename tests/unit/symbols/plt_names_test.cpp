// The forms of PLT entries are those that objdump shows of programs linked by GNU's ld, LLVM's and
// mold.
#include "support/catch2.h"
#include "support/elf_builder.h"
#include "symbols/symbol_names.h"

#include <algorithm>
#include <initializer_list>

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

constexpr uint64_t kSlots = 0x4000;

using Code = std::initializer_list<uint8_t>;

// Entries, one behind the other, that jump by slots of their own.
class PltBuilder {
 public:
  explicit PltBuilder(uint64_t address) : address_(address) {}

  PltBuilder& raw(Code bytes) {
    for (uint8_t byte : bytes) code_.u8(byte);
    return *this;
  }
  PltBuilder& jump_by(uint64_t slot) {
    raw({0xff, 0x25});
    code_.u32(kSlots + 8 * slot - (address_ + code_.size() + 4));
    return *this;
  }
  ElfSection section(std::string name) const {
    return {.name = std::move(name),
            .flags = SHF_ALLOC | SHF_EXECINSTR,
            .address = address_,
            .contents = code_.bytes()};
  }

 private:
  uint64_t address_;
  ByteWriter code_;
};

constexpr Code kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};

ElfSection relocations(std::string name, uint32_t type,
                       std::initializer_list<std::pair<uint64_t, uint64_t>> slots_and_symbols) {
  ByteWriter table;
  for (const auto& [slot, symbol] : slots_and_symbols) {
    table.u64(kSlots + 8 * slot).u64(ELF64_R_INFO(symbol, type)).u64(0);
  }
  return {.name = std::move(name), .type = SHT_RELA, .contents = table.bytes()};
}

// Symbols 1 to 6 are functions of other images.
ElfBuilder image_with_symbols(ElfKind kind = {}) {
  SymbolTableBuilder dynamic(kind);
  for (const char* name : {"one", "_Z3twov", "three@VERS_1", "four", "five", "six"}) {
    dynamic.add({name, 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF});
  }
  ElfBuilder elf(kind);
  elf.section(
      {.name = ".dynsym", .type = SHT_DYNSYM, .contents = dynamic.symbols(), .link = ".dynstr"});
  elf.section({.name = ".dynstr", .type = SHT_STRTAB, .contents = dynamic.strings()});
  elf.segment({.flags = PF_R | PF_X, .vaddr = 0x1000, .file_bytes = 1, .memory_bytes = 0x1000});
  return elf;
}

std::vector<std::string> names(const ElfBuilder& elf, std::initializer_list<uint64_t> addresses,
                               symbols::SymbolBudget& budget) {
  const MemoryByteSource file(elf.build());
  std::vector<LinkAddress> sorted;
  for (uint64_t address : addresses) sorted.push_back({address});
  std::vector<std::string> result;
  for (auto& name : symbols::names_at(file, elf::read_layout(file).value(), sorted, budget)) {
    result.push_back(name.value_or("-"));
  }
  return result;
}

std::vector<std::string> names(const ElfBuilder& elf, std::initializer_list<uint64_t> addresses) {
  symbols::SymbolBudget budget;
  return names(elf, addresses, budget);
}

using Names = std::vector<std::string>;

// The first one of 16 bytes goes to the dynamic linker, by words that have no relocation.
ElfSection lazy_plt() {
  PltBuilder plt(0x1000);
  plt.raw({0xff, 0x35, 2, 0x30, 0, 0}).jump_by(100).raw({0x0f, 0x1f, 0x40, 0});
  plt.jump_by(0).raw({0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff});
  plt.jump_by(1).raw({0x68, 1, 0, 0, 0, 0xe9, 0xd0, 0xff, 0xff, 0xff});
  return plt.section(".plt");
}

}  // namespace

TEST_CASE("an entry of the PLT has the name of the function that it jumps to") {
  ElfBuilder elf = image_with_symbols();
  elf.section(lazy_plt());
  elf.section(relocations(".rela.plt", R_X86_64_JUMP_SLOT, {{0, 1}, {1, 2}}));
  // At the jump, behind it before it was ever bound, and at the end.
  CHECK(names(elf, {0x1000, 0x1006, 0x1010, 0x1016, 0x101b, 0x101f, 0x1020, 0x1030}) ==
        Names{"-", "-", "one@plt", "one@plt", "one@plt", "one@plt", "two()@plt", "-"});
}

TEST_CASE("entries of the PLT that begin with endbr64 have names") {
  PltBuilder of_gnu(0x1100);
  of_gnu.raw(kEndbr64).raw({0xf2}).jump_by(2).raw({0x0f, 0x1f, 0x44, 0, 0});
  of_gnu.raw(kEndbr64).jump_by(3).raw({0x66, 0x0f, 0x1f, 0x44, 0, 0});
  PltBuilder of_mold(0x1200);
  of_mold.raw(kEndbr64).raw({0x41, 0xbb, 7, 0, 0, 0}).jump_by(4);
  ElfBuilder elf = image_with_symbols();
  elf.section(of_gnu.section(".plt.sec")).section(of_mold.section(".plt"));
  elf.section(relocations(".rela.plt", R_X86_64_JUMP_SLOT, {{4, 5}, {3, 4}, {2, 3}}));
  CHECK(
      names(elf, {0x1100, 0x1104, 0x1110, 0x1114, 0x1200, 0x1204, 0x120a}) ==
      Names{"three@plt", "three@plt", "four@plt", "four@plt", "five@plt", "five@plt", "five@plt"});
}

TEST_CASE("entries of eight bytes are told from each other") {
  PltBuilder plt(0x1000);
  plt.jump_by(0).raw({0x66, 0x90}).jump_by(1).raw({0x66, 0x90}).jump_by(2).raw({0x66, 0x90});
  ElfBuilder elf = image_with_symbols();
  elf.section(plt.section(".plt.got"));
  elf.section(relocations(".rela.dyn", R_X86_64_GLOB_DAT, {{0, 4}, {1, 5}, {2, 6}}));
  CHECK(names(elf, {0x1000, 0x1006, 0x1008, 0x1010, 0x1016}) ==
        Names{"four@plt", "four@plt", "five@plt", "six@plt", "six@plt"});
}

TEST_CASE("what does not lead to a symbol is not named as an entry of the PLT") {
  const auto names_with = [](const ElfSection& table, ElfKind kind = {}) {
    ElfBuilder elf = image_with_symbols(kind);
    elf.section(lazy_plt()).section(table);
    return names(elf, {0x1010, 0x1020});
  };
  constexpr uint32_t kJump = R_X86_64_JUMP_SLOT;
  CHECK(names_with(relocations(".rela.plt", kJump, {{0, 7}, {1, 0}})) == Names{"-", "-"});
  CHECK(names_with(relocations(".rela.plt", kJump, {{0, 0xffffffff}, {1, 1}})) ==
        Names{"-", "one@plt"});
  CHECK(names_with(relocations(".rela.plt", R_X86_64_IRELATIVE, {{0, 1}})) == Names{"-", "-"});
  CHECK(names_with(relocations(".rela.plt", kJump, {{0, 1}}), {.machine = EM_AARCH64}) ==
        Names{"-", "-"});
  // It ends in the middle of a relocation.
  ElfSection cut = relocations(".rela.plt", kJump, {{0, 1}, {1, 2}});
  cut.contents.resize(40);
  CHECK(names_with(cut) == Names{"one@plt", "-"});
}

TEST_CASE("many entries and relocations of one slot do not take the product of their numbers") {
  constexpr uint64_t kEntries = 20'000, kRelocations = 500'000;
  PltBuilder plt(0x1000);
  std::vector<LinkAddress> addresses;
  for (uint64_t i = 0; i < kEntries; ++i) {
    plt.jump_by(0).raw({0x66, 0x90});
    addresses.push_back({0x1000 + 8 * i});
  }
  ByteWriter table;
  for (uint64_t i = 0; i < kRelocations; ++i) {
    table.u64(kSlots).u64(ELF64_R_INFO(1, R_X86_64_JUMP_SLOT)).u64(0);
  }
  ElfBuilder elf = image_with_symbols();
  elf.section(plt.section(".plt"));
  elf.section({.name = ".rela.plt", .type = SHT_RELA, .contents = table.bytes()});
  const MemoryByteSource file(elf.build());
  symbols::SymbolBudget budget;
  const auto found = symbols::names_at(file, elf::read_layout(file).value(), addresses, budget);
  CHECK(std::ranges::count(found, std::optional<std::string>("one@plt")) == kEntries);
}

TEST_CASE("a PLT that is cut within an entry is not read beyond its end") {
  ElfBuilder elf = image_with_symbols();
  ElfSection plt = lazy_plt();
  plt.contents.resize(0x25);  // in the second entry's displacement
  elf.section(plt).section(relocations(".rela.plt", R_X86_64_JUMP_SLOT, {{0, 1}, {1, 2}}));
  CHECK(names(elf, {0x1010, 0x1020, 0x1024, 0x1025}) == Names{"one@plt", "-", "-", "-"});
}

TEST_CASE("relocations beyond the budget are not read, which is counted") {
  ElfBuilder elf = image_with_symbols();
  elf.section(lazy_plt());
  elf.section(relocations(".rela.plt", R_X86_64_JUMP_SLOT, {{0, 1}, {1, 2}}));
  const uint64_t needed_bytes = 7 * sizeof(Elf64_Sym) + 2 * sizeof(Elf64_Rela);
  symbols::SymbolBudget budget{.table_bytes = needed_bytes};
  CHECK(names(elf, {0x1010}, budget) == Names{"one@plt"});
  CHECK(budget.tables_cut == 0);
  budget.table_bytes = needed_bytes - 1;
  CHECK(names(elf, {0x1010}, budget) == Names{"-"});
  CHECK(budget.tables_cut == 1);
}
