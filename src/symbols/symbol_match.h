// The best function symbol for each of a batch of addresses, from symbols that come in any order.
#pragma once

#include "base/address.h"
#include "elf/layout.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sentry_prof::symbols {

// A symbol that may name code.
struct Symbol {
  uint64_t start = 0;
  uint64_t size_bytes = 0;  // zero for labels of hand-written assembly
  uint32_t name_offset = 0;
  uint8_t binding = 0;       // STB_*
  bool is_function = false;  // STT_FUNC or STT_GNU_IFUNC; else STT_NOTYPE
};

// A name that a choice may be called by.
struct SymbolAlias {
  uint32_t name_offset = 0;  // st_name
  uint8_t binding = 0;       // STB_*

  bool operator==(const SymbolAlias&) const = default;
};

// The names of the symbols that are equally good for an address, in the order in which they came.
// Which of them reads best can be said only once they have been read.
struct SymbolChoice {
  // Nearly all functions of real libraries have one or two names, libc's have up to six.
  static constexpr size_t kMaxAliases = 6;

  std::array<SymbolAlias, kMaxAliases> aliases{};
  uint8_t count = 0;
  bool is_label = false;  // without size: held by nothing but the lack of a next symbol

  bool operator==(const SymbolChoice&) const = default;
};

// Memory is bounded by the number of addresses. Of several symbols that hold an address, a function
// beats a label without type, then the nearest start wins (the inner of two nested symbols), then
// GLOBAL and WEAK over LOCAL. A symbol without size reaches up to the next symbol,
// but no farther than 4 KiB, only in .text (behind the last label of .init stands the PLT), and
// only where no other holds the address.
class SymbolMatch {
 public:
  // Addresses in ascending order; both arguments must outlive this object.
  SymbolMatch(const elf::Layout& layout, std::span<const LinkAddress> sorted_addresses);

  void add(const Symbol& symbol);

  // For each address.
  std::vector<std::optional<SymbolChoice>> winners() const;

 private:
  struct Candidate {
    Symbol symbol;  // the first
    SymbolChoice choice;
  };
  template <typename Rank>
  static void offer(const Symbol& symbol, Rank rank, std::optional<Candidate>& place);

  size_t first_at_or_above(uint64_t address) const;
  bool label_reaches(const Symbol& label, LinkAddress address) const;

  const elf::Layout& layout_;
  std::span<const LinkAddress> addresses_;
  std::vector<std::optional<Candidate>>
      holders_;  // the best symbol with a size that holds address i
  // The last symbol that starts in (address i-1, address i].
  std::vector<std::optional<Candidate>> last_starts_;
  uint64_t comparisons_left_;
};

}  // namespace sentry_prof::symbols
