#include "recorder/wall_clock.h"

#include "base/time_units.h"
#include "os/clock.h"

namespace sentry_prof::recorder {
namespace {

using profile::ClockAnchor;

// Whoever is kept from the CPU between the two readings would see a step.
constexpr uint64_t kLongestReading_ns = kSmallestClockStep_ns / 10;
constexpr int kAttempts = 3;
// A clock that is set over and over would make chunks that hold nothing.
constexpr uint64_t kRest_ns = kNsPerSecond;

struct Reading {
  ClockAnchor anchor;
  bool is_good = false;
};

Reading read_clocks() {
  Reading reading;
  for (int i = 0; i < kAttempts && !reading.is_good; ++i) {
    reading.anchor.monotonic_ns = os::monotonic_ns();
    reading.anchor.unix_ns = os::unix_ns();
    reading.is_good = os::monotonic_ns() - reading.anchor.monotonic_ns < kLongestReading_ns;
  }
  return reading;
}

}  // namespace

bool is_clock_step(const ClockAnchor& before, const ClockAnchor& now) {
  const uint64_t expected_ns = before.to_unix_ns(now.monotonic_ns);
  const uint64_t step_ns =
      now.unix_ns > expected_ns ? now.unix_ns - expected_ns : expected_ns - now.unix_ns;
  return step_ns >= kSmallestClockStep_ns;
}

WallClock::WallClock() : anchor_(read_clocks().anchor) {}

bool WallClock::has_stepped() {
  const Reading reading = read_clocks();
  const bool is_soon = reading.anchor.monotonic_ns - anchor_.monotonic_ns < kRest_ns;
  if (!reading.is_good || is_soon || !is_clock_step(anchor_, reading.anchor)) return false;
  anchor_ = reading.anchor;
  return true;
}

}  // namespace sentry_prof::recorder
