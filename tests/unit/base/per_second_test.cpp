#include "base/per_second.h"

#include "support/catch2.h"

using namespace sentry_prof;

namespace {

constexpr uint64_t kBegin_ns = 100 * kNsPerSecond;

uint32_t turns_at(PerSecond& turns, uint64_t now_ns) {
  uint32_t taken = 0;
  while (taken < 100 && turns.take(now_ns)) ++taken;
  return taken;
}

}  // namespace

TEST_CASE("A second has so many turns, and the next one as many again") {
  PerSecond turns(3);
  CHECK(turns_at(turns, kBegin_ns) == 3);
  CHECK(turns_at(turns, kBegin_ns + kNsPerSecond - 1) == 0);
  CHECK(turns_at(turns, kBegin_ns + kNsPerSecond) == 3);
  CHECK(turns_at(turns, kBegin_ns + 10 * kNsPerSecond) == 3);
}

TEST_CASE("A second begins with its first turn") {
  PerSecond turns(3);
  CHECK(turns.take(kBegin_ns));
  CHECK(turns_at(turns, kBegin_ns + kNsPerSecond * 3 / 2) == 3);
  CHECK(turns_at(turns, kBegin_ns + 2 * kNsPerSecond) == 0);
  CHECK(turns_at(turns, kBegin_ns + kNsPerSecond * 5 / 2) == 3);
}

TEST_CASE("Turns of a time before are of the second that has begun") {
  PerSecond turns(3);
  CHECK(turns.take(kBegin_ns));
  CHECK(turns_at(turns, kBegin_ns - 5 * kNsPerSecond) == 2);
  CHECK_FALSE(turns.take(kBegin_ns));
}

TEST_CASE("In the first second of all times there are turns as well") {
  PerSecond turns(3);
  CHECK(turns_at(turns, 0) == 3);
  CHECK(turns_at(turns, kNsPerSecond - 1) == 0);
  CHECK(turns_at(turns, kNsPerSecond) == 3);
}

TEST_CASE("No turns are none") {
  PerSecond turns(0);
  CHECK_FALSE(turns.take(kBegin_ns));
  CHECK_FALSE(turns.take(kBegin_ns + kNsPerSecond));
}
