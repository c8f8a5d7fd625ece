// The best function symbol for each of a batch of addresses, from symbols that come in any order.
#pragma once

#include "base/address.h"
#include "elf/function_starts.h"
#include "elf/layout.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::symbols {

// A symbol that may name code.
struct Symbol {
  uint64_t start = 0;
  uint64_t size_bytes = 0;  // zero for labels of hand-written assembly and gcc's start-up code
  uint32_t name_offset = 0;
  uint8_t binding = 0;       // STB_*
  bool is_function = false;  // STT_FUNC or STT_GNU_IFUNC; else STT_NOTYPE
};

// The names of the symbols that are equally good for an address, in the order in which they came.
// Which of them reads best can be said only once they have been read.
struct SymbolChoice {
  // Nearly all functions of real libraries have one or two names, libc's have up to six.
  static constexpr size_t kMaxAliases = 6;

  std::array<uint32_t, kMaxAliases> name_offsets{};  // st_name
  uint8_t count = 0;
  uint8_t weak_mask = 0;  // which of them are STB_WEAK
  static_assert(kMaxAliases <= 8);
  bool is_label = false;  // without size: held by nothing but the lack of a next symbol

  bool is_weak(size_t alias) const { return (weak_mask >> alias & 1) != 0; }
  bool operator==(const SymbolChoice&) const = default;
};

// Memory is bounded by the number of addresses. Of several symbols that hold an address, a function
// beats a label without type, then the nearest start wins (the inner of two nested symbols), then
// GLOBAL and WEAK over LOCAL. A symbol without size reaches up to the next symbol,
// but no farther than 4 KiB, only in .text (behind the last
// label of .init stands the PLT), only to where the unwind tables say that a function begins, and
// only where no other holds the address.
class SymbolMatch {
 public:
  // Addresses in ascending order; all arguments must outlive this object. `function_starts` may be
  // null. It is asked only where a symbol without size would win.
  SymbolMatch(const elf::Layout& layout, const elf::FunctionStarts* function_starts,
              std::span<const LinkAddress> sorted_addresses);

  void add(const Symbol& symbol);
  // Whether symbols overlap so much that not all could be compared: addresses may lack names, or
  // have those of outer symbols.
  bool is_cut() const { return is_cut_; }

  // Of neighbouring addresses that have the same one, there is one.
  struct Winners {
    static constexpr uint32_t kNone = UINT32_MAX;

    std::vector<SymbolChoice> choices;
    std::vector<uint32_t> choice_of;  // for each address: an index, or kNone
  };
  Winners winners() const;

 private:
  // What symbols are compared by. There are two places for each address, so they are kept small.
  struct Standing {
    uint64_t start = 0;
    bool has_size = false;
    bool is_function = false;
    bool is_local = false;
  };
  // Free while its choice has no name.
  struct Place {
    Standing standing;
    SymbolChoice choice;
  };
  static auto rank_of_holder(const Standing& symbol);
  static auto rank_of_start(const Standing& symbol);
  template <typename Rank>
  static void offer(const Symbol& symbol, Rank rank, Place& place);

  size_t first_at_or_above(uint64_t address) const;
  bool is_same_code(LinkAddress label, LinkAddress address) const;
  bool label_reaches(const Standing& label, LinkAddress address) const;

  const elf::Layout& layout_;
  const elf::FunctionStarts* function_starts_;
  std::span<const LinkAddress> addresses_;
  std::vector<Place> holders_;      // the best symbol with a size that holds address i
  std::vector<Place> last_starts_;  // the last symbol that starts in (address i-1, address i]
  uint64_t comparisons_left_;
  bool is_cut_ = false;
};

}  // namespace sentry_prof::symbols
