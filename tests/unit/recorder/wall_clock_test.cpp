#include "recorder/wall_clock.h"

#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::recorder;

TEST_CASE("What moves the wall clock against the other one is a step, in either direction") {
  constexpr profile::ClockAnchor kBefore{1'000, 5'000'000'000};
  constexpr uint64_t kLater_ns = 60'000'000'000;
  const auto is_step = [&](int64_t by_ns) {
    return is_clock_step(kBefore, {1'000 + kLater_ns, 5'000'000'000 + kLater_ns + by_ns});
  };
  constexpr auto kSmallest_ns = static_cast<int64_t>(kSmallestClockStep_ns);
  CHECK_FALSE(is_step(0));
  CHECK_FALSE(is_step(kSmallest_ns - 1));
  CHECK_FALSE(is_step(-kSmallest_ns + 1));
  CHECK(is_step(kSmallest_ns));
  CHECK(is_step(-kSmallest_ns));
  CHECK(is_step(-60'000'000'000));  // set back to when it was read before
}

TEST_CASE("A clock that nobody sets makes no step") {
  WallClock clock;
  const uint64_t begin_ns = clock.anchor().unix_ns;
  CHECK(begin_ns > 0);
  CHECK_FALSE(clock.has_stepped());
  CHECK(clock.anchor().unix_ns == begin_ns);
}
