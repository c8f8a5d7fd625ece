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

bool holds(const elf::Section& section, uint64_t address) {
  return address >= section.address.value && address - section.address.value < section.size_bytes;
}

}  // namespace

SymbolMatch::SymbolMatch(const elf::Layout& layout, const elf::FunctionStarts* function_starts,
                         std::span<const LinkAddress> sorted_addresses)
    : layout_(layout),
      function_starts_(function_starts),
      addresses_(sorted_addresses),
      holders_(sorted_addresses.size()),
      last_starts_(sorted_addresses.size()),
      comparisons_left_(kMaxComparisons) {}

size_t SymbolMatch::first_at_or_above(uint64_t address) const {
  return static_cast<size_t>(
      std::lower_bound(addresses_.begin(), addresses_.end(), LinkAddress{address}) -
      addresses_.begin());
}

// More is better.
auto SymbolMatch::rank_of_holder(const Standing& s) {
  return std::tuple(s.is_function, s.start, !s.is_local);
}

auto SymbolMatch::rank_of_start(const Standing& s) {
  return std::tuple(s.start, s.has_size, s.is_function, !s.is_local);
}

template <typename Rank>
void SymbolMatch::offer(const Symbol& symbol, Rank rank, Place& place) {
  const Standing standing{symbol.start, symbol.size_bytes != 0, symbol.is_function,
                          symbol.binding == STB_LOCAL};
  SymbolChoice& choice = place.choice;
  const bool is_free = choice.count == 0;
  if (!is_free && rank(standing) < rank(place.standing)) return;
  if (is_free || rank(standing) > rank(place.standing)) place = {standing, {}};
  if (choice.count == SymbolChoice::kMaxAliases) return;
  if (symbol.binding == STB_WEAK) choice.weak_mask |= static_cast<uint8_t>(1u << choice.count);
  choice.name_offsets[choice.count++] = symbol.name_offset;
}

void SymbolMatch::add(const Symbol& symbol) {
  if (addresses_.empty() || symbol.start > addresses_.back().value) return;
  size_t i = first_at_or_above(symbol.start);
  offer(symbol, rank_of_start, last_starts_[i]);
  for (; i < addresses_.size() && addresses_[i].value - symbol.start < symbol.size_bytes; ++i) {
    if (comparisons_left_ == 0) {
      is_cut_ = true;
      return;
    }
    --comparisons_left_;
    offer(symbol, rank_of_holder, holders_[i]);
  }
}

bool SymbolMatch::is_same_code(LinkAddress label, LinkAddress address) const {
  const auto holds_both = [&](const elf::Section& range) {
    return holds(range, label.value) && holds(range, address.value);
  };
  if (layout_.text) return holds_both(*layout_.text);
  return std::any_of(layout_.segments.begin(), layout_.segments.end(), [&](const elf::Segment& s) {
    return s.is_executable && holds_both({s.vaddr, 0, s.memory_bytes});
  });
}

// A function that begins at the label, or before it, is the one that the label stands in.
bool SymbolMatch::label_reaches(const Standing& label, LinkAddress address) const {
  const LinkAddress start{label.start};
  const bool is_near = address.value - start.value < kLongestLabel_bytes;
  if (!is_near || !is_same_code(start, address)) return false;
  return function_starts_ == nullptr || !function_starts_->has_begin_in(start, address);
}

SymbolMatch::Winners SymbolMatch::winners() const {
  Winners winners;
  winners.choice_of.reserve(addresses_.size());
  const Place* last_start = nullptr;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (last_starts_[i].choice.count > 0) last_start = &last_starts_[i];
    const bool is_label = holders_[i].choice.count == 0 && last_start != nullptr &&
                          !last_start->standing.has_size &&
                          label_reaches(last_start->standing, addresses_[i]);
    SymbolChoice choice = is_label ? last_start->choice : holders_[i].choice;
    choice.is_label = is_label;
    if (choice.count > 0 && (winners.choices.empty() || winners.choices.back() != choice)) {
      winners.choices.push_back(choice);
    }
    winners.choice_of.push_back(choice.count > 0 ? static_cast<uint32_t>(winners.choices.size() - 1)
                                                 : Winners::kNone);
  }
  return winners;
}

}  // namespace sentry_prof::symbols
