// Where a frame's caller was looked for all over the stack, or the function's beginning all over
// the code before, and not found.
#pragma once

#include "base/hash.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace sentry_prof::unwind {

// Looking takes some 50 us, and where it fails it mostly does so for every sample of that pc: so it
// is done again after 1, 3, 7 ... samples. 16 bytes a place; of two pcs that share one the later
// has it.
template <unsigned kIndexBits>
class BasicVainSearches {
 public:
  // `max_pause`: of how many samples at the most.
  explicit BasicVainSearches(uint8_t max_pause = UINT8_MAX) : max_pause_(max_pause) {}

  // `key` is that of the rule cache, or of what has none, a runtime pc. False: it has failed too
  // lately.
  bool is_due(uint64_t key) {
    Place& place = place_of(key);
    if (place.key != key || place.left == 0) return true;
    --place.left;
    return false;
  }

  void add(uint64_t key) {
    Place& place = place_of(key);
    if (place.key != key) place = {key, 0, 0};
    place.pause = static_cast<uint8_t>(std::min(2 * place.pause + 1, int{max_pause_}));
    place.left = place.pause;
  }

  // Something else may be found now than lately.
  void make_due(uint64_t key) {
    Place& place = place_of(key);
    if (place.key == key) place.left = 0;
  }

  // It was found.
  void clear(uint64_t key) {
    Place& place = place_of(key);
    if (place.key == key) place = {};
  }

 private:
  static constexpr unsigned kIndexShift = 64 - kIndexBits;
  struct Place {
    uint64_t key = 0;
    uint8_t pause = 0;
    uint8_t left = 0;  // of it
  };
  static_assert(sizeof(Place) == 16);

  Place& place_of(uint64_t key) {
    return places_[static_cast<size_t>(spread_bits(key) >> kIndexShift)];
  }

  const uint8_t max_pause_;
  std::array<Place, size_t{1} << kIndexBits> places_{};
};

using VainSearches = BasicVainSearches<8>;

}  // namespace sentry_prof::unwind
