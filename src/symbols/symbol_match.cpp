#include "symbols/symbol_match.h"

#include <algorithm>
#include <tuple>

#include <elf.h>

namespace sentry_prof::symbols {
namespace {

// Each symbol is compared with each address that it holds. In real tables that is a few times the
// number of addresses (aliases); a hostile one could let a million symbols hold all addresses. This
// many are a hundred for each address of a chunk of 160,000 frames, and take less than a tenth of a
// second; what has been found until then stays.
constexpr uint64_t kMaxComparisons = 1 << 24;
// How far a symbol without size may name code. Where a library was stripped the next symbol says
// nothing: Debian's libx264 has 192 KiB of other functions behind one exported label. Few functions
// of assembly are longer than this, and those mostly have a size.
constexpr uint64_t kLongestLabel_bytes = 4096;

// More is better.
auto rank_of_holder(const Symbol& s) {
  return std::tuple(s.is_function, s.start, s.binding != STB_LOCAL);
}

auto rank_of_start(const Symbol& s) {
  return std::tuple(s.start, s.size_bytes != 0, s.is_function, s.binding != STB_LOCAL);
}

bool holds(const elf::Section& section, uint64_t address) {
  return address >= section.address.value && address - section.address.value < section.size_bytes;
}

}  // namespace

SymbolMatch::SymbolMatch(const elf::Layout& layout, std::span<const LinkAddress> sorted_addresses)
    : layout_(layout),
      addresses_(sorted_addresses),
      holders_(sorted_addresses.size()),
      last_starts_(sorted_addresses.size()),
      comparisons_left_(kMaxComparisons) {}

size_t SymbolMatch::first_at_or_above(uint64_t address) const {
  return static_cast<size_t>(
      std::lower_bound(addresses_.begin(), addresses_.end(), LinkAddress{address}) -
      addresses_.begin());
}

template <typename Rank>
void SymbolMatch::offer(const Symbol& symbol, Rank rank, std::optional<Candidate>& place) {
  if (place && rank(symbol) < rank(place->symbol)) return;
  if (!place || rank(symbol) > rank(place->symbol)) place = Candidate{symbol, {}};
  SymbolChoice& choice = place->choice;
  if (choice.count == SymbolChoice::kMaxAliases) return;
  choice.aliases[choice.count++] = {symbol.name_offset, symbol.binding};
}

void SymbolMatch::add(const Symbol& symbol) {
  if (addresses_.empty() || symbol.start > addresses_.back().value) return;
  size_t i = first_at_or_above(symbol.start);
  offer(symbol, rank_of_start, last_starts_[i]);
  for (; i < addresses_.size() && addresses_[i].value - symbol.start < symbol.size_bytes; ++i) {
    if (comparisons_left_ == 0) return;
    --comparisons_left_;
    offer(symbol, rank_of_holder, holders_[i]);
  }
}

bool SymbolMatch::label_reaches(const Symbol& label, LinkAddress address) const {
  if (address.value - label.start >= kLongestLabel_bytes) return false;
  if (layout_.text) {
    return holds(*layout_.text, label.start) && holds(*layout_.text, address.value);
  }
  return std::any_of(layout_.segments.begin(), layout_.segments.end(), [&](const elf::Segment& s) {
    const elf::Section range{s.vaddr, 0, s.memory_bytes};
    return s.is_executable && holds(range, label.start) && holds(range, address.value);
  });
}

std::vector<std::optional<SymbolChoice>> SymbolMatch::winners() const {
  std::vector<std::optional<SymbolChoice>> choices(addresses_.size());
  std::optional<Candidate> last_start;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (last_starts_[i]) last_start = last_starts_[i];
    const bool is_label = !holders_[i] && last_start && last_start->symbol.size_bytes == 0 &&
                          label_reaches(last_start->symbol, addresses_[i]);
    const std::optional<Candidate>& winner = is_label ? last_start : holders_[i];
    if (!winner) continue;
    choices[i] = winner->choice;
    choices[i]->is_label = is_label;
  }
  return choices;
}

}  // namespace sentry_prof::symbols
