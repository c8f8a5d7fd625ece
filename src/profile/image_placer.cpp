#include "profile/finish_chunk.h"

#include <algorithm>
#include <iterator>

namespace sentry_prof::profile {
namespace {

// The smallest page of x86-64 and aarch64: the kernel maps nothing finer.
constexpr uint64_t kPage_bytes = 4096;
// Free ranges are sought here: below the half of 64 bits (no user address of either CPU is higher),
// above the first 64 KiB (vm.mmap_min_addr keeps real images out of there).
constexpr uint64_t kLowest = 64 * 1024;
constexpr uint64_t kHighest = uint64_t{1} << 63;
// How many neighbours a search passes. Beside a preferred address there are some dozens in a row;
// a hostile file has tens of thousands of images at one.
constexpr size_t kMaxNeighbours = 256;

struct Range {
  uint64_t begin = 0, end = 0;
};

// The pages that [address, address + size) touches; at least one. False if they pass kHighest.
bool pages_of(uint64_t address, uint64_t size_bytes, Range& pages) {
  const uint64_t size = std::max<uint64_t>(size_bytes, 1);
  if (address >= kHighest || size > kHighest - address) return false;
  pages.begin = address / kPage_bytes * kPage_bytes;
  pages.end = (address + size + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
  return true;
}

bool is_free(const std::map<uint64_t, uint64_t>& taken, const Range& range) {
  auto next = taken.lower_bound(range.end);  // the first that begins at or after our end
  return next == taken.begin() || std::prev(next)->second <= range.begin;
}

// The lowest free range of `size` bytes at or above `from`, below kHighest; 0 if there is none, or
// none before `max_neighbours` ranges have been passed.
uint64_t free_range_above(const std::map<uint64_t, uint64_t>& taken, uint64_t from, uint64_t size,
                          size_t max_neighbours = SIZE_MAX) {
  uint64_t candidate = from;
  auto next = taken.upper_bound(from);
  if (next != taken.begin()) candidate = std::max(candidate, std::prev(next)->second);
  for (; next != taken.end() && next->first - candidate < size; ++next) {
    if (max_neighbours-- == 0) return 0;
    candidate = next->second;
  }
  return candidate < kHighest && size <= kHighest - candidate ? candidate : 0;
}

}  // namespace

uint64_t ImagePlacer::place(uint32_t image, uint64_t preferred, uint64_t size_bytes) {
  if (auto it = placed_.find(image); it != placed_.end()) return it->second.address;
  const uint64_t size = std::min(size_bytes, kMaxPlaced_bytes);
  Range range;
  uint64_t address = preferred;
  if (!pages_of(preferred, size, range) || !is_free(taken_, range)) {
    // Congruent to the preferred address, so that offsets within a page read as they did.
    const uint64_t in_page = preferred % kPage_bytes;
    pages_of(in_page, size, range);
    const uint64_t length = range.end - range.begin;
    const uint64_t from = std::max(preferred - in_page, kLowest);
    uint64_t begin = free_range_above(taken_, from, length, kMaxNeighbours);
    if (begin == 0) begin = free_range_elsewhere(length);
    address = begin + in_page;
    range = {begin, begin + length};
  }
  taken_.emplace(range.begin, range.end);
  placed_.emplace(image, Placed{address, range.begin});
  return address;
}

// Goes on where the last one ended: no range is passed twice before all addresses have been.
uint64_t ImagePlacer::free_range_elsewhere(uint64_t size) {
  uint64_t begin = free_range_above(taken_, std::max(elsewhere_, kLowest), size);
  if (begin == 0) begin = free_range_above(taken_, kLowest, size);
  elsewhere_ = begin + size;
  return begin;
}

void ImagePlacer::forget(uint32_t image) {
  const auto placed = placed_.find(image);
  if (placed == placed_.end()) return;
  taken_.erase(placed->second.range_begin);
  placed_.erase(placed);
}

void ImagePlacer::forget_from(uint32_t first) {
  const auto begin = placed_.lower_bound(first);
  for (auto it = begin; it != placed_.end(); ++it) taken_.erase(it->second.range_begin);
  placed_.erase(begin, placed_.end());
}

}  // namespace sentry_prof::profile
