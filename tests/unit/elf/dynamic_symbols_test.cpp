// Files without section headers, whose .dynsym is found through PT_DYNAMIC.
#include "elf/dynamic_symbols.h"

#include "support/catch2.h"
#include "support/elf_builder.h"

using namespace sentry_prof;
using namespace sentry_prof::elf;
using namespace sentry_prof::test;

namespace {

enum class Hash { SysV, Gnu, None };

constexpr uint64_t kTables = 0x1000, kStrings = 0x1100, kHash = 0x1200;

// Three symbols (the null symbol, one undefined, one in the GNU hash table); `hashed_end` is the
// word that ends its chain.
ElfBuilder stripped(ElfKind kind, Hash hash, uint32_t hashed_end = 0x1235,
                    uint64_t strings_bytes = 10, uint64_t bias = 0) {
  kind.with_section_headers = false;
  SymbolTableBuilder table(kind);
  table.add({.name = "puts", .type = STT_FUNC})
      .add({.name = "main", .value = 0x2000, .section = 1});
  ElfBuilder elf(kind);
  ByteWriter loaded = elf.writer();
  loaded.raw(table.symbols()).zeros_until(kStrings - kTables).raw(table.strings());
  loaded.zeros_until(kHash - kTables);
  if (hash == Hash::SysV) loaded.u32(1).u32(3).u32(1).u32(2).u32(1).u32(0);
  if (hash == Hash::Gnu) {
    loaded.u32(2).u32(2).u32(1).u32(0).word(0).u32(0).u32(2).u32(hashed_end);
  }
  ByteWriter dynamic = elf.writer();
  dynamic.word(DT_SYMTAB).word(bias + kTables).word(DT_STRTAB).word(bias + kStrings);
  dynamic.word(DT_STRSZ).word(strings_bytes);
  if (hash != Hash::None)
    dynamic.word(hash == Hash::Gnu ? DT_GNU_HASH : DT_HASH).word(bias + kHash);
  dynamic.word(DT_NULL).word(0);
  elf.section({.name = "loaded", .address = kTables, .contents = loaded.bytes()});
  elf.section({.name = "dynamic", .address = 0x5000, .contents = dynamic.bytes()});
  elf.segment({.of_section = "loaded"});
  elf.segment({.type = PT_DYNAMIC, .of_section = "dynamic"});
  return elf;
}

std::optional<SymbolSection> dynsym_of(const ElfBuilder& elf) {
  return read_layout(MemoryByteSource(elf.build())).value().dynsym;
}

}  // namespace

TEST_CASE("read_layout finds .dynsym through the dynamic section in every class and byte order") {
  for (const ElfKind& kind : {ElfKind{.is_64_bit = true, .order = std::endian::little},
                              ElfKind{.is_64_bit = false, .order = std::endian::little},
                              ElfKind{.is_64_bit = true, .order = std::endian::big},
                              ElfKind{.is_64_bit = false, .order = std::endian::big}}) {
    for (Hash hash : {Hash::SysV, Hash::Gnu}) {
      const auto dynsym = dynsym_of(stripped(kind, hash));
      REQUIRE(dynsym);
      CHECK(dynsym->symbols.address.value == kTables);
      CHECK(dynsym->symbols.size_bytes == 3 * (kind.is_64_bit ? 24 : 16));
      CHECK(dynsym->strings.address.value == kStrings);
      CHECK(dynsym->strings.size_bytes == 10);
    }
  }
}

TEST_CASE("read_layout has no .dynsym where its size is not known or lies") {
  CHECK_FALSE(dynsym_of(stripped({}, Hash::None)));
  CHECK_FALSE(dynsym_of(stripped({}, Hash::Gnu, 0x1234)));  // a chain without end
  CHECK_FALSE(dynsym_of(stripped({}, Hash::SysV, 0, UINT64_MAX)));
  CHECK_FALSE(dynsym_of(stripped({}, Hash::SysV, 0, 0)));
}

TEST_CASE("find_dynamic_symbols knows addresses that the loader has relocated") {
  constexpr LoadBias kBias{0x7f00'0000'0000};
  for (const Hash hash : {Hash::SysV, Hash::Gnu}) {
    const MemoryByteSource file(stripped({}, hash, 0x1235, 10, kBias.value).build());
    const Layout layout = read_layout(file).value();
    CHECK_FALSE(layout.dynsym);
    REQUIRE(layout.dynamic);
    const auto found = find_dynamic_symbols(file, layout, *layout.dynamic, kBias);
    REQUIRE(found);
    CHECK(found->symbols.address.value == kTables);
    CHECK(found->strings.address.value == kStrings);
    CHECK_FALSE(find_dynamic_symbols(file, layout, *layout.dynamic, {kBias.value + 0x1000}));
  }
}
