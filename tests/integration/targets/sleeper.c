// sleeper [WALL_SECONDS]: works 100 ms of CPU time in work_100_ms, sleeps 300 ms in sleep_300_ms,
// again and again: three quarters of a profile of it must be drawn as idle.
#include "work.h"

TARGET_FUNCTION void work_100_ms(void) {
  const double end = thread_cpu_seconds() + 0.1;
  while (thread_cpu_seconds() < end) burn(50000, 19);
}

TARGET_FUNCTION void sleep_300_ms(void) {
  sleep_seconds(0.3);
  g_sink = 0;
}

int main(int argc, char** argv) {
  const double end = wall_seconds() + number_argument(argc, argv, 1, 2.0);
  while (wall_seconds() < end) {
    work_100_ms();
    sleep_300_ms();
  }
  return 0;
}
