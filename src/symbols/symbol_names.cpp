#include "symbols/symbol_names.h"

#include "base/utf8.h"
#include "elf/go_function_table.h"
#include "elf/packed_section.h"
#include "symbols/symbol_match.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <elf.h>

namespace sentry_prof::symbols {
namespace {

constexpr size_t kPiece_bytes = 64 * 1024;
// A table of 16 million symbols: the largest browsers' debug builds have some millions.
constexpr uint64_t kMaxTable_bytes = uint64_t{384} << 20;
// MiniDebugInfo, expanded: 350,000 symbols with names of fifty letters.
constexpr size_t kMaxDebugdata_bytes = size_t{32} << 20;
constexpr uint64_t kMaxGoFunctions_bytes = uint64_t{32} << 20;  // begins of four million functions
constexpr size_t kMaxName_bytes = 4096;
constexpr size_t kFirstRead_bytes = 256;  // nearly every name fits
// There is one name for each address: with 70,000 addresses this makes 70 MB.
constexpr size_t kMaxShown_bytes = 1024;

struct RawSymbol {
  uint32_t name = 0;
  uint8_t info = 0;
  uint16_t section = 0;
  uint64_t value = 0, size_bytes = 0;
};

RawSymbol decode_symbol(ByteReader& reader, bool is_64_bit) {
  RawSymbol symbol;
  symbol.name = reader.u32();
  if (!is_64_bit) {
    symbol.value = reader.u32();
    symbol.size_bytes = reader.u32();
  }
  symbol.info = reader.u8();
  reader.skip(1);  // st_other
  symbol.section = reader.u16();
  if (is_64_bit) {
    symbol.value = reader.u64();
    symbol.size_bytes = reader.u64();
  }
  return symbol;
}

bool is_code_address(const elf::Layout& layout, uint64_t address) {
  return std::any_of(layout.segments.begin(), layout.segments.end(), [&](const elf::Segment& s) {
    return s.is_executable && address >= s.vaddr.value && address - s.vaddr.value < s.memory_bytes;
  });
}

// Labels without type and size that mark code and data for disassemblers ("$x", "$d").
bool has_mapping_symbols(uint16_t machine) {
  return machine == EM_ARM || machine == EM_AARCH64 || machine == EM_RISCV;
}

std::optional<Symbol> as_code_symbol(const elf::Layout& layout, const RawSymbol& raw) {
  const uint8_t type = raw.info & 0xf;
  Symbol symbol{raw.value, raw.size_bytes, raw.name, static_cast<uint8_t>(raw.info >> 4),
                type == STT_FUNC || type == STT_GNU_IFUNC};
  if (raw.section == SHN_UNDEF || raw.name == 0) return std::nullopt;
  if (symbol.is_function) {
    if (layout.machine == EM_ARM) symbol.start &= ~uint64_t{1};  // set in Thumb functions
    return symbol;
  }
  if (type != STT_NOTYPE || raw.section == SHN_ABS) return std::nullopt;
  if (symbol.binding == STB_LOCAL && symbol.size_bytes == 0 &&
      has_mapping_symbols(layout.machine)) {
    return std::nullopt;
  }
  if (!is_code_address(layout, symbol.start)) return std::nullopt;
  return symbol;
}

void add_symbols(const ByteSource& file, const elf::Layout& layout, const elf::Section& table,
                 SymbolMatch& match) {
  const size_t entry_bytes = layout.is_64_bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  const size_t piece_bytes = kPiece_bytes / entry_bytes * entry_bytes;
  uint64_t left = std::min(table.size_bytes, kMaxTable_bytes) / entry_bytes * entry_bytes;
  uint64_t offset = table.file_offset;
  std::vector<std::byte> piece;
  while (left != 0) {
    piece.resize(static_cast<size_t>(std::min<uint64_t>(left, piece_bytes)));
    if (!file.read_at(offset, piece)) return;
    ByteReader reader(piece, layout.order);
    while (!reader.at_end()) {
      const auto symbol = as_code_symbol(layout, decode_symbol(reader, layout.is_64_bit));
      if (symbol) match.add(*symbol);
    }
    offset += piece.size();
    left -= piece.size();
  }
}

// The string at `offset` of a string table, of a longer one the first kMaxName_bytes; none if it is
// empty or not terminated.
std::optional<std::string> read_name(const ByteSource& file, const elf::Section& strings,
                                     uint32_t offset) {
  std::array<char, kMaxName_bytes> buffer;
  if (offset >= strings.size_bytes) return std::nullopt;
  const uint64_t available = strings.size_bytes - offset;
  for (size_t limit : {kFirstRead_bytes, kMaxName_bytes}) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(available, limit));
    const std::span text = std::span(buffer).first(count);
    if (!file.read_at(strings.file_offset + offset, std::as_writable_bytes(text))) break;
    const auto end = std::find(text.begin(), text.end(), '\0');
    if (end == text.begin()) break;
    if (end != text.end() || count == kMaxName_bytes) return std::string(text.begin(), end);
  }
  return std::nullopt;
}

// Some linkers write "name@VERSION" and "name@@VERSION" into .symtab.
std::string_view without_version(std::string_view name) {
  const size_t at = name.find('@');
  return at == 0 ? name : name.substr(0, at);
}

// Less is better: "malloc" rather than "__libc_malloc", GLOBAL rather than WEAK, "free" rather than
// "cfree" and "open" rather than "open64".
auto plainness(std::string_view name, uint8_t binding) {
  const size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  return std::tuple(underscores, binding == STB_WEAK, name.size());
}

std::optional<std::string> read_best_name(const ByteSource& file, const elf::Section& strings,
                                          const SymbolChoice& choice) {
  std::optional<std::string> best;
  uint8_t best_binding = 0;
  for (const SymbolAlias& alias : std::span(choice.aliases).first(choice.count)) {
    auto name = read_name(file, strings, alias.name_offset);
    if (!name) continue;
    if (best && plainness(*best, best_binding) <= plainness(*name, alias.binding)) continue;
    best = std::move(name);
    best_binding = alias.binding;
  }
  return best;
}

struct Name {
  std::optional<std::string> text;
  bool is_label = false;
};
using Names = std::vector<Name>;

// `file` holds the table, `layout` is that of the image.
Names names_of_table(const ByteSource& file, const elf::Layout& layout,
                     const std::optional<elf::SymbolSection>& table,
                     std::span<const LinkAddress> sorted_addresses) {
  Names names(sorted_addresses.size());
  if (!table || sorted_addresses.empty()) return names;
  SymbolMatch match(layout, sorted_addresses);
  add_symbols(file, layout, table->symbols, match);

  const auto winners = match.winners();
  for (size_t i = 0; i < winners.size(); ++i) {
    if (!winners[i]) continue;
    if (i > 0 && winners[i] == winners[i - 1]) {
      names[i] = names[i - 1];
    } else if (const auto name = read_best_name(file, table->strings, *winners[i])) {
      names[i] = {shortened_utf8(demangled(without_version(*name)), kMaxShown_bytes),
                  winners[i]->is_label};
    }
  }
  return names;
}

// The symbols that were stripped and that .dynsym does not have.
Names names_of_debugdata(const ByteSource& file, const elf::Layout& layout,
                         std::span<const LinkAddress> sorted_addresses) {
  elf::Expansion expansion{kMaxDebugdata_bytes};
  const auto inner = elf::unpack_debugdata(file, layout, expansion);
  if (!inner) return Names(sorted_addresses.size());
  const auto inner_layout = elf::read_layout(**inner);
  if (!inner_layout) return Names(sorted_addresses.size());
  return names_of_table(**inner, layout, inner_layout->symtab, sorted_addresses);
}

// Go's runtime knows its functions' names also where there is no symbol table.
void take_names_of_go(const ByteSource& file, const elf::Layout& layout,
                      std::span<const LinkAddress> sorted_addresses, Names& names) {
  const auto table = elf::GoFunctionTable::open(file, layout, kMaxGoFunctions_bytes);
  if (!table) return;
  for (size_t i = 0; i < names.size(); ++i) {
    auto name = (*table)->name_at(sorted_addresses[i], kMaxName_bytes);
    if (name) names[i].text = shortened_utf8(*name, kMaxShown_bytes);
  }
}

std::vector<std::optional<std::string>> texts_of(Names names) {
  std::vector<std::optional<std::string>> texts;
  texts.reserve(names.size());
  for (Name& name : names) texts.push_back(std::move(name.text));
  return texts;
}

}  // namespace

std::vector<std::optional<std::string>> names_at(const ByteSource& file, const elf::Layout& layout,
                                                 std::span<const LinkAddress> sorted_addresses) {
  if (layout.symtab) {
    return texts_of(names_of_table(file, layout, layout.symtab, sorted_addresses));
  }
  Names names = names_of_table(file, layout, layout.dynsym, sorted_addresses);
  if (layout.gnu_debugdata) {
    Names stripped = names_of_debugdata(file, layout, sorted_addresses);
    for (size_t i = 0; i < names.size(); ++i) {
      // The next symbol, up to which a label reaches, may be in the other table.
      const bool is_better =
          stripped[i].text && (!stripped[i].is_label || !names[i].text || names[i].is_label);
      if (is_better) names[i] = std::move(stripped[i]);
    }
  }
  take_names_of_go(file, layout, sorted_addresses, names);
  return texts_of(std::move(names));
}

}  // namespace sentry_prof::symbols
