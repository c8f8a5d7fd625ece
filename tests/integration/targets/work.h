// What every target program shares: work that costs the same wherever the compiler puts it, and
// clocks.
//
// The targets are C, without symbols beyond the usual ones and without frame pointers (see
// meson.build), so that what a profiler sees of them is what it sees of ordinary programs.
// Functions that a test looks for are marked TARGET_FUNCTION.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Neither inlined nor cloned nor merged with a twin: the name in the symbol table is the name in
// the profile.
#if defined(__clang__)
#define TARGET_FUNCTION __attribute__((noinline, used))
#else
#define TARGET_FUNCTION __attribute__((noipa, used))
#endif

// About 5 ms of CPU time on a machine of 3 GHz.
#define ITERATIONS_OF_5_MS 3000000u

static volatile uint64_t g_sink;

// One chain of dependent multiplications: its cost is latency, which does not depend on how the
// loop is aligned. The seed differs from function to function, so that no two of them are the same
// code.
static inline __attribute__((always_inline)) void burn(uint64_t iterations, uint64_t seed) {
  uint64_t value = seed;
  for (uint64_t i = 0; i < iterations; ++i) {
    value = value * 6364136223846793005u + seed;
#ifdef TARGET_LEAVES_HAVE_FRAMES
    // Compilers give a function that calls nothing no frame, or only around what needs it, whatever
    // their options say: so the loop needs it.
    __asm__ volatile("" : "+r"(value) : "r"(__builtin_frame_address(0)));
#else
    __asm__ volatile("" : "+r"(value));
#endif
  }
  g_sink = value;
}

static inline double clock_seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline double process_cpu_seconds(void) { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }
static inline double thread_cpu_seconds(void) { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }
static inline double wall_seconds(void) { return clock_seconds(CLOCK_MONOTONIC); }

static inline void sleep_seconds(double seconds) {
  struct timespec rest;
  rest.tv_sec = (time_t)seconds;
  rest.tv_nsec = (long)((seconds - (double)rest.tv_sec) * 1e9);
  while (nanosleep(&rest, &rest) != 0) {
  }
}

// The number in argv[index], or `otherwise` where there is none.
static inline double number_argument(int argc, char** argv, int index, double otherwise) {
  if (argc <= index) return otherwise;
  char* end = NULL;
  const double value = strtod(argv[index], &end);
  if (end == argv[index] || *end != '\0' || value < 0) {
    fprintf(stderr, "%s: not a number: %s\n", argv[0], argv[index]);
    exit(2);
  }
  return value;
}
