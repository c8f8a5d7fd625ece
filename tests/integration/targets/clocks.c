// clocks [WALL_SECONDS]: reads the clock in a loop, in read_clocks. Most of its time is spent in the
// vdso, where the kernel has one.
#include "work.h"

TARGET_FUNCTION void read_clocks(double end) {
  while (wall_seconds() < end) {
    for (int i = 0; i < 10000; ++i) g_sink = (uint64_t)wall_seconds();
  }
}

int main(int argc, char** argv) {
  read_clocks(wall_seconds() + number_argument(argc, argv, 1, 1.0));
  return 0;
}
