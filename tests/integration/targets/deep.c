// deep DEPTH [CPU_SECONDS [FRAME_BYTES]]: recurses DEPTH times through descend, each frame with
// FRAME_BYTES (default 0) bytes more than it needs, and burns CPU_SECONDS at the bottom.
#include "work.h"

#include <alloca.h>
#include <sys/resource.h>
#include <unistd.h>

static double g_cpu_seconds;
static size_t g_frame_bytes;

TARGET_FUNCTION void burn_at_the_bottom(void) {
  const double end = process_cpu_seconds() + g_cpu_seconds;
  while (process_cpu_seconds() < end) burn(50000, 59);
}

TARGET_FUNCTION uint64_t descend(uint64_t depth) {
  volatile unsigned char* const room = (unsigned char*)alloca(g_frame_bytes + 1);
  room[0] = (unsigned char)depth;
  if (depth == 0) {
    burn_at_the_bottom();
    return room[0];
  }
  return descend(depth - 1) + room[0];
}

// The limit of the main thread's stack is read at exec: raise it and start again, once.
static void get_a_large_stack(char** argv) {
  struct rlimit limit;
  const rlim_t wanted = (rlim_t)1 << 30;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
  if (getenv("DEEP_STARTED_AGAIN") != NULL || setrlimit(RLIMIT_STACK, &limit) != 0) return;
  setenv("DEEP_STARTED_AGAIN", "1", 1);
  execv("/proc/self/exe", argv);
}

int main(int argc, char** argv) {
  const uint64_t depth = (uint64_t)number_argument(argc, argv, 1, 100);
  g_cpu_seconds = number_argument(argc, argv, 2, 1.0);
  g_frame_bytes = (size_t)number_argument(argc, argv, 3, 0);
  if (depth * (g_frame_bytes + 64) > 4u << 20) get_a_large_stack(argv);
  g_sink = descend(depth);
  return 0;
}
