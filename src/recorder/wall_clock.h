// How the wall clock stands to CLOCK_MONOTONIC, and when it was set.
#pragma once

#include "profile/finish_chunk.h"

#include <cstdint>

namespace sentry_prof::recorder {

// Both clocks are slewed alike, so they part only where the wall clock is set or the machine
// sleeps. Time daemons set it where it is wrong by more (ntpd by 128 ms, systemd-timesyncd by
// 400 ms) and slew it where it is wrong by less.
inline constexpr uint64_t kSmallestClockStep_ns = 100'000'000;

// Whether the wall clock has moved by that much against the other one.
bool is_clock_step(const profile::ClockAnchor& before, const profile::ClockAnchor& now);

class WallClock {
 public:
  WallClock();

  const profile::ClockAnchor& anchor() const { return anchor_; }
  // Reads both clocks. True if there was a step since anchor(), which is a new one then; never
  // twice within a second.
  bool has_stepped();

 private:
  profile::ClockAnchor anchor_;
};

}  // namespace sentry_prof::recorder
