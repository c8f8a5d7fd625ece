// applets [WALL_SECONDS [burn]]: as busybox is made. What runs is called by a pointer out of a table, and
// all of its callers but the C library's do not return: nothing behind their calls leads out.
#include "work.h"

typedef void Applet(double end);

TARGET_FUNCTION int compare(const void* a, const void* b) {
  const int x = *(const int*)a;
  const int y = *(const int*)b;
  return (x > y) - (x < y);
}

TARGET_FUNCTION void sort_round(void) {
  int numbers[512];
  unsigned value = 1;
  for (int i = 0; i < 512; ++i) numbers[i] = (int)(value = value * 1664525u + 1013904223u);
  qsort(numbers, 512, sizeof(int), compare);
  g_sink = (uint64_t)numbers[0];
}

TARGET_FUNCTION void sort_applet(double end) {
  while (wall_seconds() < end) sort_round();
}

TARGET_FUNCTION void burn_applet(double end) {
  while (wall_seconds() < end) burn(1000, 7);
}

static Applet* const volatile g_applets[] = {burn_applet, sort_applet};

// Its large frame holds what other calls left there.
TARGET_FUNCTION __attribute__((noreturn)) void run_applet(unsigned number, double end) {
  volatile char leftovers[1000];
  leftovers[0] = 0;
  g_applets[number](end);
  exit(leftovers[0]);
}

TARGET_FUNCTION __attribute__((noreturn)) void run_and_exit(int argc, char** argv) {
  const double end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  sort_round();
  if (argc > 2) run_applet(0, end);
  run_applet(1, end);
}

int main(int argc, char** argv) { run_and_exit(argc, argv); }
