// The clock of the benches in memory.
#pragma once

#include <ctime>

namespace sentry_prof::bench {

// CPU time of this thread: what others do on the machine meanwhile does not count.
inline double cpu_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace sentry_prof::bench
