// Clocks and this process's own use of resources.
#pragma once

#include <cstdint>

namespace sentry_prof::os {

// The host's, which perf's records tell of, also in a time namespace.
uint64_t monotonic_ns();
uint64_t unix_ns();
uint64_t boottime_ns();    // goes on in suspend, as what the kernel says of starts of processes
uint64_t thread_cpu_ns();  // of the calling thread
double own_cpu_seconds();  // user + system, all threads
uint64_t own_peak_rss_bytes();  // VmHWM

}  // namespace sentry_prof::os
