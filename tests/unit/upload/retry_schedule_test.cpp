#include "upload/retry_schedule.h"

#include "support/catch2.h"

#include <limits>

using namespace sentry_prof::upload;

namespace {

constexpr RetryPolicy kPolicy{8, 1000, 16000};

}  // namespace

TEST_CASE("Waits double up to the longest one, then there are no more", "[retry_schedule]") {
  // Zero draws the shortest wait of each range: its half.
  RetrySchedule schedule(kPolicy, [] { return uint64_t{0}; });
  for (const uint64_t expected : {500, 1000, 2000, 4000, 8000, 8000, 8000, 8000}) {
    CHECK(schedule.next_wait_ns() == expected);
  }
  CHECK_FALSE(schedule.next_wait_ns());
  CHECK_FALSE(schedule.next_wait_ns());
}

TEST_CASE("Jitter spreads a wait over the upper half of its range", "[retry_schedule]") {
  RetrySchedule highest(kPolicy, [] { return uint64_t{500}; });
  CHECK(highest.next_wait_ns() == 1000);
  RetrySchedule wraps(kPolicy, [] { return uint64_t{501}; });
  CHECK(wraps.next_wait_ns() == 500);
}

TEST_CASE("Odd policies neither overflow nor divide by zero", "[retry_schedule]") {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  RetrySchedule huge({3, kMax / 2 + 1, kMax - 1}, [] { return uint64_t{0}; });
  CHECK(huge.next_wait_ns() == kMax / 4 + 1);
  CHECK(huge.next_wait_ns() == kMax / 2);
  RetrySchedule none({1, 0, 0}, [] { return uint64_t{7}; });
  CHECK(none.next_wait_ns() == 0);
  RetrySchedule never({0, 1000, 1000}, [] { return uint64_t{7}; });
  CHECK_FALSE(never.next_wait_ns());
}
