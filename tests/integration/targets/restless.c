// restless [CPU_SECONDS]: descends and returns again within less than a millisecond, by frames of 30
// KB of which every other one writes only to its ends.
#include "work.h"

#define FRAME_BYTES 30000

// How deep it goes, and by which functions, is another one each time.
TARGET_FUNCTION uint64_t descend(uint64_t depth, uint64_t path);

TARGET_FUNCTION void work_at_the_bottom(void) { burn(20000, 61); }

TARGET_FUNCTION uint64_t by_written_frame(uint64_t depth, uint64_t path) {
  volatile unsigned char room[FRAME_BYTES];
  for (size_t i = 0; i < FRAME_BYTES; i += 1024) room[i] = (unsigned char)i;
  return descend(depth, path) + room[1024];
}

TARGET_FUNCTION uint64_t by_frame_with_a_gap(uint64_t depth, uint64_t path) {
  volatile unsigned char room[FRAME_BYTES];
  room[0] = room[FRAME_BYTES - 1] = (unsigned char)depth;
  return descend(depth, path) + room[0];
}

TARGET_FUNCTION uint64_t descend(uint64_t depth, uint64_t path) {
  if (depth == 0) {
    work_at_the_bottom();
    return path;
  }
  const int has_gap = (path & 1) != 0;
  return (has_gap ? by_frame_with_a_gap : by_written_frame)(depth - 1, path >> 1) + 1;
}

int main(int argc, char** argv) {
  const double end = process_cpu_seconds() + number_argument(argc, argv, 1, 1.0);
  for (uint64_t round = 1; process_cpu_seconds() < end; ++round) {
    const uint64_t path = round * 0x9e3779b97f4a7c15;
    g_sink += descend(4 + path % 4, path >> 8);
  }
  return 0;
}
