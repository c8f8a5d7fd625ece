// restless [CPU_SECONDS]: descends by six calls of one of two functions, at random, works for a moment at
// the bottom and returns again. Each frame has 30 KB, of which every other one writes only the ends.
#include "work.h"

#define FRAME_BYTES 30000

TARGET_FUNCTION void work_at_the_bottom(void) { burn(20000, 61); }

// The leaf's stack pointer is the same in both.
#define DEFINE_DESCENT(name, number)                                    \
  TARGET_FUNCTION uint64_t name(uint64_t depth) {                       \
    volatile unsigned char room[FRAME_BYTES];                           \
    const size_t step = depth % 2 == 0 ? 1024 : FRAME_BYTES - 1;        \
    for (size_t i = 0; i < FRAME_BYTES; i += step) room[i] = (number);  \
    if (depth == 0) {                                                   \
      work_at_the_bottom();                                             \
    } else {                                                            \
      g_sink += name(depth - 1);                                        \
    }                                                                   \
    return room[0];                                                     \
  }

DEFINE_DESCENT(left, 1)
DEFINE_DESCENT(right, 2)

int main(int argc, char** argv) {
  const double end = process_cpu_seconds() + number_argument(argc, argv, 1, 1.0);
  for (uint64_t round = 1; process_cpu_seconds() < end; ++round) {
    const uint64_t random = round * 0x9e3779b97f4a7c15 >> 63;
    g_sink += random != 0 ? left(5) : right(5);
  }
  return 0;
}
