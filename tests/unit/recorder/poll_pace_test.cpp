#include "recorder/poll_pace.h"

#include "support/catch2.h"

using namespace sentry_prof::recorder;

TEST_CASE("The rings are looked into soon at first, and while most copies are cut") {
  constexpr uint64_t kStart_ns = 1'000'000'000;
  PollPace pace(kStart_ns);
  CHECK(pace.interval_ns() == PollPace::kDeepInterval_ns);
  uint64_t now_ns = kStart_ns + PollPace::kFirstPhase_ns - 1;
  pace.on_drained(now_ns, 10, 0);
  CHECK(pace.interval_ns() == PollPace::kDeepInterval_ns);
  pace.on_drained(++now_ns, 20, 0);
  CHECK(pace.interval_ns() == kPollInterval_ns);
  // Half of ten more are not most; six are.
  pace.on_drained(++now_ns, 30, 5);
  CHECK(pace.interval_ns() == kPollInterval_ns);
  pace.on_drained(++now_ns, 40, 11);
  CHECK(pace.interval_ns() == PollPace::kDeepInterval_ns);
  // As long as that was lately so.
  pace.on_drained(now_ns + PollPace::kDeepPhase_ns - 1, 50, 11);
  CHECK(pace.interval_ns() == PollPace::kDeepInterval_ns);
  pace.on_drained(now_ns + PollPace::kDeepPhase_ns, 60, 11);
  CHECK(pace.interval_ns() == kPollInterval_ns);
}
