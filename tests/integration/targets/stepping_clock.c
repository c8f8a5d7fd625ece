// For LD_PRELOAD: the wall clock is set an hour ahead 1.5 s after it is first read.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long kStep_s = 3600;

static long long monotonic_ns(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec* result) {
  static long long first_ns;
  const int status = (int)syscall(SYS_clock_gettime, clock, result);
  if (status != 0 || clock != CLOCK_REALTIME) return status;
  if (first_ns == 0) first_ns = monotonic_ns();
  if (monotonic_ns() - first_ns > 1500000000LL) result->tv_sec += kStep_s;
  return 0;
}
