// callbacks [WALL_SECONDS]: sorts. The C library's code stands between main and what it calls back.
#include "work.h"

enum { kNumbers = 4096 };

TARGET_FUNCTION int compare(const void* a, const void* b) {
  const int x = *(const int*)a;
  const int y = *(const int*)b;
  return (x > y) - (x < y);
}

TARGET_FUNCTION void shuffle(int* numbers) {
  unsigned value = 1;
  for (int i = 0; i < kNumbers; ++i) numbers[i] = (int)(value = value * 1664525u + 1013904223u);
}

int main(int argc, char** argv) {
  static int numbers[kNumbers];
  const double end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  do {
    shuffle(numbers);
    qsort(numbers, kNumbers, sizeof(int), compare);
  } while (wall_seconds() < end);
  return 0;
}
