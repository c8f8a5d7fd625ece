#include "os/clock.h"

#include "base/time_units.h"
#include "os/file.h"
#include "os/time_namespace.h"

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

#include <sys/resource.h>
#include <time.h>

namespace sentry_prof::os {

namespace {

uint64_t read_clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

namespace {

// The file tells of the namespace that children will be in, which may be another one (unshare
// without --fork).
int64_t own_monotonic_offset_ns() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/ns/time", error);
  const auto of_children = std::filesystem::read_symlink("/proc/self/ns/time_for_children", error);
  if (error || own != of_children) return 0;
  return monotonic_offset_ns(read_small_file("/proc/self/timens_offsets").value_or(""));
}

}  // namespace

uint64_t monotonic_ns() {
  // Linux 5.6 and newer have the file. A process that runs stays in its namespace.
  static const int64_t offset_ns = own_monotonic_offset_ns();
  return read_clock_ns(CLOCK_MONOTONIC) - static_cast<uint64_t>(offset_ns);
}

uint64_t unix_ns() { return read_clock_ns(CLOCK_REALTIME); }

uint64_t boottime_ns() { return read_clock_ns(CLOCK_BOOTTIME); }

uint64_t thread_cpu_ns() { return read_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// Not ru_maxrss: that is inherited over exec and may tell of the shell's peak.
uint64_t own_peak_rss_bytes() {
  const auto status = read_small_file("/proc/self/status");
  if (!status) return 0;
  constexpr std::string_view kKey = "VmHWM:";
  const size_t line = status->find(kKey);
  if (line == std::string::npos) return 0;
  const size_t digits = status->find_first_of("0123456789", line + kKey.size());
  if (digits == std::string::npos) return 0;
  uint64_t kib = 0;
  std::from_chars(status->data() + digits, status->data() + status->size(), kib);
  return kib * 1024;
}

}  // namespace sentry_prof::os
