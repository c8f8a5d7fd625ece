// Clocks and this process's own use of resources.
#pragma once

#include <cstdint>

namespace sentry_prof::os {

uint64_t monotonic_ns();
uint64_t unix_ns();
double own_cpu_seconds();       // user + system, all threads
uint64_t own_peak_rss_bytes();  // VmHWM

}  // namespace sentry_prof::os
