#include "elf/cfi_index.h"

#include <algorithm>
#include <tuple>

namespace sentry_prof::elf {

namespace {

// Linkers do not let FDEs overlap; a hostile file must not make a search linear.
constexpr size_t kMaxOverlap = 8;

}  // namespace

uint64_t FdeIndex::build(const FrameSection& section, uint64_t max_entries) {
  FdeScanner scanner(section, max_entries);
  Fde fde;
  while (scanner.next(fde)) {
    if (fde.begin == fde.end) continue;
    if (fde.offset > UINT32_MAX) {
      problem_ = CfiStatus::Unsupported;
      break;
    }
    const uint64_t length_bytes = std::min<uint64_t>(fde.end.value - fde.begin.value, UINT32_MAX);
    items_.push_back(
        {fde.begin.value, static_cast<uint32_t>(length_bytes), static_cast<uint32_t>(fde.offset)});
  }
  if (problem_ == CfiStatus::Ok) problem_ = scanner.problem();
  items_.shrink_to_fit();
  // Descending offsets for equal addresses: find() meets the first in the file first.
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    return std::tie(a.begin, b.offset) < std::tie(b.begin, a.offset);
  });
  return max_entries - scanner.entries_left();
}

size_t FdeIndex::count_until(uint64_t pc) const {
  const auto behind = std::upper_bound(items_.begin(), items_.end(), pc,
                                       [](uint64_t a, const Item& b) { return a < b.begin; });
  return static_cast<size_t>(behind - items_.begin());
}

std::optional<uint64_t> FdeIndex::last_begin(uint64_t pc) const {
  const size_t before = count_until(pc);
  return before == 0 ? std::nullopt : std::optional(items_[before - 1].begin);
}

std::optional<uint64_t> FdeIndex::find(uint64_t pc) const {
  const size_t before = count_until(pc);
  for (size_t i = 1; i <= std::min(before, kMaxOverlap); ++i) {
    const Item& item = items_[before - i];
    if (item.may_cover(pc)) return item.offset;
  }
  return std::nullopt;
}

}  // namespace sentry_prof::elf
