// Waiting for what another thread or process does, with an end.
#pragma once

#include <ctime>

namespace sentry_prof::test {

inline void sleep_for(double seconds) {
  timespec rest{static_cast<time_t>(seconds), 0};
  rest.tv_nsec = static_cast<long>((seconds - static_cast<double>(rest.tv_sec)) * 1e9);
  ::nanosleep(&rest, nullptr);
}

inline double now_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Until `condition` holds; false if that takes too long: to be required, so that the test that
// waits in vain is the one that fails, and not Meson's time limit.
template <typename Condition>
bool wait_until(Condition condition, double time_out_s = 30) {
  const double end_s = now_s() + time_out_s;
  while (!condition()) {
    if (now_s() > end_s) return false;
    sleep_for(0.005);
  }
  return true;
}

}  // namespace sentry_prof::test
