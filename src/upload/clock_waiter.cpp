#include "upload/clock_waiter.h"

#include "base/time_units.h"
#include "os/clock.h"

#include <algorithm>

#include <poll.h>

namespace sentry_prof::upload {

namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// poll() counts in an int.
constexpr uint64_t kLongestPoll_ms = 3'600'000;

bool becomes_readable(int fd, uint64_t time_out_ms) {
  pollfd stop{fd, POLLIN, 0};
  return ::poll(&stop, 1, static_cast<int>(std::min(time_out_ms, kLongestPoll_ms))) > 0;
}

}  // namespace

uint64_t ClockWaiter::now_ns() const { return os::monotonic_ns(); }

int64_t ClockWaiter::unix_now_s() const {
  return static_cast<int64_t>(os::unix_ns() / kNsPerSecond);
}

bool ClockWaiter::wait(uint64_t duration_ns) {
  const uint64_t end_ns = now_ns() + duration_ns;
  for (;;) {
    const uint64_t now = now_ns();
    const uint64_t left_ms = now >= end_ns ? 0 : (end_ns - now + kNsPerMs - 1) / kNsPerMs;
    if (becomes_readable(stop_fd_, left_ms)) return false;
    if (now >= end_ns) return true;
  }
}

bool ClockWaiter::is_stopped() const { return becomes_readable(stop_fd_, 0); }

}  // namespace sentry_prof::upload
