#include "symbols/symbol_names.h"

#include "base/checked.h"
#include "base/utf8.h"
#include "elf/go_function_table.h"
#include "elf/packed_section.h"
#include "elf/signal_return.h"
#include "symbols/plt_names.h"
#include "symbols/string_table.h"
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
constexpr uint64_t kMaxDebugdata_bytes = uint64_t{32} << 20;
constexpr uint64_t kMaxGoFunctions_bytes = uint64_t{32} << 20;  // begins of four million functions
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
  return symbol;
}

// False if not all of the table may be read.
bool add_symbols(const ByteSource& file, const elf::Layout& layout, const elf::Section& table,
                 SymbolMatch& match, SymbolBudget& budget) {
  const size_t entry_bytes = layout.is_64_bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  const size_t piece_bytes = kPiece_bytes / entry_bytes * entry_bytes;
  const uint64_t readable_bytes = std::min(kMaxTable_bytes, budget.table_bytes);
  const bool is_whole = table.size_bytes <= readable_bytes;
  uint64_t left = std::min(table.size_bytes, readable_bytes) / entry_bytes * entry_bytes;
  budget.table_bytes -= left;
  uint64_t offset = table.file_offset;
  std::vector<std::byte> piece;
  while (left != 0) {
    piece.resize(static_cast<size_t>(std::min<uint64_t>(left, piece_bytes)));
    if (!file.read_at(offset, piece)) break;
    ByteReader reader(piece, layout.order);
    while (!reader.at_end()) {
      const auto symbol = as_code_symbol(layout, decode_symbol(reader, layout.is_64_bit));
      if (symbol) match.add(*symbol);
    }
    offset += piece.size();
    left -= piece.size();
  }
  return is_whole;
}

// Some linkers write "name@VERSION" and "name@@VERSION" into .symtab.
std::string_view without_version(std::string_view name) {
  const size_t at = name.find('@');
  return at == 0 ? name : name.substr(0, at);
}

// Less is better: "malloc" rather than "__libc_malloc", GLOBAL rather than WEAK, "free" rather than
// "cfree" and "open" rather than "open64"; then the one that came first.
using Plainness = std::tuple<size_t, bool, size_t, uint32_t>;

Plainness plainness_of(std::string_view name, const SymbolChoice& choice, uint32_t alias) {
  const size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  return {underscores, choice.is_weak(alias), name.size(), alias};
}

// What is read of a string table, in its order.
struct WantedName {
  uint32_t offset;
  uint32_t choice;
};

// Which of each choice's names is the plainest. Only of those that have several one is read.
std::vector<WantedName> plainest_names(const ByteSource& file, const elf::Section& strings,
                                       std::span<const SymbolChoice> choices) {
  struct Alias {
    uint32_t offset;
    uint32_t choice;
    uint32_t alias;
  };
  std::vector<WantedName> plainest;
  std::vector<Alias> aliases;
  for (uint32_t i = 0; i < choices.size(); ++i) {
    if (choices[i].count > 0) plainest.push_back({choices[i].name_offsets[0], i});
    for (uint32_t alias = 0; choices[i].count > 1 && alias < choices[i].count; ++alias) {
      aliases.push_back({choices[i].name_offsets[alias], i, alias});
    }
  }
  std::ranges::sort(aliases, {}, &Alias::offset);

  StringTable table(file, strings);
  std::vector<std::optional<Plainness>> best(choices.size());
  for (const Alias& next : aliases) {
    const auto name = table.at(next.offset);
    if (!name) continue;
    const SymbolChoice& choice = choices[next.choice];
    const Plainness plainness = plainness_of(without_version(*name), choice, next.alias);
    if (!best[next.choice] || plainness < *best[next.choice]) best[next.choice] = plainness;
  }
  for (WantedName& name : plainest) {
    const auto& plainness = best[name.choice];
    if (plainness) name.offset = choices[name.choice].name_offsets[std::get<3>(*plainness)];
  }
  std::ranges::sort(plainest, {}, &WantedName::offset);
  return plainest;
}

bool may_be_mangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("_D");
}

// Demangles as long as the budget lasts.
std::string demangled_within(SymbolBudget& budget, std::string_view name) {
  if (budget.now_ns == nullptr) return demangled(name);
  if (budget.demangling_ns == 0) {
    if (may_be_mangled(name)) ++budget.names_left_mangled;
    return std::string(name);
  }
  const uint64_t begin_ns = budget.now_ns();
  std::string text = demangled(name);
  budget.demangling_ns -= std::min(budget.demangling_ns, budget.now_ns() - begin_ns);
  return text;
}

// The plainest of each choice's names, as it is shown; "" where none can be read.
std::vector<std::string> read_best_names(const ByteSource& file, const elf::Section& strings,
                                         std::span<const SymbolChoice> choices,
                                         SymbolBudget& budget) {
  StringTable table(file, strings);
  std::vector<std::string> names(choices.size());
  const WantedName* last = nullptr;
  const std::vector<WantedName> plainest = plainest_names(file, strings, choices);
  for (const WantedName& next : plainest) {
    const bool is_same = last != nullptr && last->offset == next.offset;
    if (is_same) {
      names[next.choice] = names[last->choice];
    } else if (const auto name = table.at(next.offset)) {
      names[next.choice] =
          without_middle(demangled_within(budget, without_version(*name)), kMaxShown_bytes);
    }
    last = &next;
  }
  return names;
}

// Of a batch of addresses.
struct Names {
  explicit Names(size_t count) : texts(count), are_labels(count) {}

  bool are_all_functions() const {
    return std::ranges::all_of(texts, [](const auto& text) { return text.has_value(); }) &&
           std::ranges::none_of(are_labels, [](bool is_label) { return is_label; });
  }
  // What a table of less preference knows better. The next symbol, up to which a label reaches, may
  // be in the other table.
  void merge(Names others) {
    for (size_t i = 0; i < texts.size(); ++i) {
      const bool is_better =
          others.texts[i] && (!texts[i] || (are_labels[i] && !others.are_labels[i]));
      if (!is_better) continue;
      texts[i] = std::move(others.texts[i]);
      are_labels[i] = others.are_labels[i];
    }
  }

  std::vector<std::optional<std::string>> texts;
  std::vector<bool> are_labels;
};

// gcc's crtstuff.c has no sizes (-finhibit-size-directive). What runs for a moment at a program's
// start and end is not worth the names of what stands behind it: of Haskell's code, which has no
// FDEs.
bool is_start_up_function(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames{"deregister_tm_clones", "register_tm_clones",
                                                   "__do_global_dtors_aux", "frame_dummy"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// What names_at() was asked, of one image.
struct Question {
  const ByteSource& file;
  const elf::Layout& layout;
  const elf::FunctionStarts* function_starts;  // may be null
  std::span<const LinkAddress> sorted_addresses;
  SymbolBudget& budget;
};

// `file` holds the table: the image's, what is packed in it, or the debug file, which are of one
// class and byte order.
Names names_of_table(const Question& asked, const ByteSource& file,
                     const std::optional<elf::SymbolSection>& table) {
  Names names(asked.sorted_addresses.size());
  if (!table || asked.sorted_addresses.empty()) return names;
  SymbolMatch match(asked.layout, asked.function_starts, asked.sorted_addresses);
  const bool is_whole = add_symbols(file, asked.layout, table->symbols, match, asked.budget);
  if (!is_whole || match.is_cut()) ++asked.budget.tables_cut;

  const auto [choices, choice_of] = match.winners();
  const std::vector<std::string> shown =
      read_best_names(file, table->strings, choices, asked.budget);
  for (size_t i = 0; i < choice_of.size(); ++i) {
    if (choice_of[i] == SymbolMatch::Winners::kNone || shown[choice_of[i]].empty()) continue;
    const bool is_label = choices[choice_of[i]].is_label;
    if (is_label && is_start_up_function(shown[choice_of[i]])) continue;
    names.texts[i] = shown[choice_of[i]];
    names.are_labels[i] = is_label;
  }
  return names;
}

// The symbols that were stripped and that .dynsym does not have.
Names names_of_debugdata(const Question& asked) {
  const Names none(asked.sorted_addresses.size());
  SymbolBudget& budget = asked.budget;
  if (!asked.layout.gnu_debugdata) return none;
  const uint64_t stored_bytes = asked.layout.gnu_debugdata->size_bytes;
  const bool is_for_budget = !range_fits(kMaxDebugdata_bytes, stored_bytes, budget.unpacked_bytes);
  const auto inner =
      elf::unpack_debugdata(asked.file, asked.layout, {kMaxDebugdata_bytes, budget.unpacked_bytes});
  if (!inner) {
    if (is_for_budget && inner.error().code == ErrorCode::LimitExceeded) ++budget.tables_cut;
    return none;
  }
  const auto inner_layout = elf::read_layout(**inner);
  if (!inner_layout) return none;
  return names_of_table(asked, **inner, inner_layout->symtab);
}

// Go's runtime knows its functions' names also where there is no symbol table.
Names names_of_go(const Question& asked) {
  Names names(asked.sorted_addresses.size());
  const uint64_t searched_bytes = elf::go_search_bytes(asked.layout);
  if (searched_bytes > asked.budget.table_bytes) {
    ++asked.budget.tables_cut;
    return names;
  }
  asked.budget.table_bytes -= searched_bytes;
  const auto table = elf::GoFunctionTable::open(asked.file, asked.layout, kMaxGoFunctions_bytes);
  if (!table) return names;
  for (size_t i = 0; i < asked.sorted_addresses.size(); ++i) {
    auto name = (*table)->name_at(asked.sorted_addresses[i], StringTable::kMaxString_bytes);
    if (name) names.texts[i] = without_middle(*name, kMaxShown_bytes);
  }
  return names;
}

// In Debian's stripped musl the return from a signal has no symbol and stands behind setjmp's
// label, which would name all signal frames. Only what has a label is read: the code of a stripped
// program would be read wherever it was sampled.
void name_signal_returns(const Question& asked, Names& names) {
  for (size_t i = 0; i < names.texts.size(); ++i) {
    if (names.are_labels[i] &&
        elf::is_signal_return(asked.file, asked.layout, asked.sorted_addresses[i])) {
      names.texts[i] = "__restore_rt";
    }
  }
}

// As perf and gdb call them. A call spends a few instructions in them, but programs do that often.
void name_plt_entries(const Question& asked, Names& names) {
  std::vector<size_t> nameless;
  std::vector<LinkAddress> addresses;
  for (size_t i = 0; i < names.texts.size(); ++i) {
    if (names.texts[i]) continue;
    nameless.push_back(i);
    addresses.push_back(asked.sorted_addresses[i]);
  }
  const auto targets = plt_targets_at(asked.file, asked.layout, addresses, asked.budget);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i]) continue;
    names.texts[nameless[i]] = without_middle(
        demangled_within(asked.budget, without_version(*targets[i])) + "@plt", kMaxShown_bytes);
  }
}

}  // namespace

std::vector<std::optional<std::string>> names_at(const ByteSource& file, const elf::Layout& layout,
                                                 std::span<const LinkAddress> sorted_addresses,
                                                 SymbolBudget& budget,
                                                 const elf::FunctionStarts* function_starts,
                                                 const std::optional<DebugSymbols>& debug_symbols) {
  const Question asked{file, layout, function_starts, sorted_addresses, budget};
  Names names = names_of_table(asked, file, layout.symtab);
  // A .symtab may hold a few symbols only (strip -K, ld --retain-symbols-file).
  if (!names.are_all_functions()) {
    if (debug_symbols) {
      names.merge(names_of_table(asked, debug_symbols->file, debug_symbols->symtab));
    }
    names.merge(names_of_go(asked));
    names.merge(names_of_debugdata(asked));
    names.merge(names_of_table(asked, file, layout.dynsym));
    name_signal_returns(asked, names);
    name_plt_entries(asked, names);
  }
  return std::move(names.texts);
}

}  // namespace sentry_prof::symbols
