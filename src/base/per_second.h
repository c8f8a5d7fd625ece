// How often something may be done in a second.
#pragma once

#include "base/time_units.h"

#include <algorithm>
#include <cstdint>

namespace sentry_prof {

// A second begins with the first turn behind the last one's end. Times that go back a little, as
// those of different threads' samples do, are of the second that has begun.
class PerSecond {
 public:
  explicit constexpr PerSecond(uint32_t most) : most_(most) {}

  // Whether there is a turn left, which is taken then.
  [[nodiscard]] bool take(uint64_t now_ns) {
    if (now_ns - std::min(now_ns, second_begin_ns_) >= kNsPerSecond) {
      second_begin_ns_ = now_ns;
      taken_ = 0;
    }
    if (taken_ == most_) return false;
    ++taken_;
    return true;
  }

 private:
  uint32_t most_;
  uint32_t taken_ = 0;  // in this second
  uint64_t second_begin_ns_ = 0;
};

}  // namespace sentry_prof
