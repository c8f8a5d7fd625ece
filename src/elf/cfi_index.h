// A sorted index of a section's FDEs, made by reading all of it once.
#pragma once

#include "elf/cfi_entry.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace sentry_prof::elf {

// 16 bytes for each FDE. FDEs that cover nothing are left out.
class FdeIndex {
 public:
  static constexpr uint64_t kItem_bytes = 16;

  // Linear in the section, plus the sort. FDEs behind `max_entries` entries are not found later, so
  // that no index is larger than 64 MiB. How many entries were read.
  uint64_t build(const FrameSection& section, uint64_t max_entries = CfiLimits::kEntries);

  // Section offset of the FDE that covers pc; where several overlap, the last that begins at or
  // before it, and of two that begin together the first in the file.
  std::optional<uint64_t> find(uint64_t pc) const;

  // Where the last FDE that begins at or before pc begins.
  std::optional<uint64_t> last_begin(uint64_t pc) const;

  // Why the section could not be read to its end; Ok if it was. FDEs that cannot be read do not
  // count: the addresses of others are no worse known for them.
  CfiStatus problem() const { return problem_; }

  uint64_t memory_bytes() const { return items_.capacity() * sizeof(Item); }

 private:
  struct Item {
    uint64_t begin;
    uint32_t length_bytes;  // UINT32_MAX: that or more; the FDE itself knows
    uint32_t offset;

    bool may_cover(uint64_t pc) const {
      return length_bytes == UINT32_MAX || pc - begin < length_bytes;
    }
  };
  static_assert(sizeof(Item) == kItem_bytes);

  size_t count_until(uint64_t pc) const;  // that begin at or before it

  std::vector<Item> items_;
  CfiStatus problem_ = CfiStatus::Ok;
};

}  // namespace sentry_prof::elf
