// threads_named [WALL_SECONDS]: three busy threads, each named after the one function it is busy
// in, two named threads that sleep, and a main thread that waits for them.
#define _GNU_SOURCE
#include "work.h"

#include <pthread.h>

static double g_end;

TARGET_FUNCTION void* burn_red(void* unused) {
  while (wall_seconds() < g_end) burn(100000, 11);
  return unused;
}

TARGET_FUNCTION void* burn_green(void* unused) {
  while (wall_seconds() < g_end) burn(100000, 13);
  return unused;
}

TARGET_FUNCTION void* burn_blue(void* unused) {
  while (wall_seconds() < g_end) burn(100000, 17);
  return unused;
}

TARGET_FUNCTION void* sleep_until_end(void* unused) {
  sleep_seconds(g_end - wall_seconds());
  return unused;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void* (*run)(void*);
  } threads[] = {{"busy-red", burn_red},
                 {"busy-green", burn_green},
                 {"busy-blue", burn_blue},
                 {"sleepy-one", sleep_until_end},
                 {"sleepy-two", sleep_until_end}};
  enum { kCount = sizeof threads / sizeof threads[0] };
  pthread_t ids[kCount];
  g_end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  for (int i = 0; i < kCount; ++i) {
    if (pthread_create(&ids[i], NULL, threads[i].run, NULL) != 0) return 1;
    pthread_setname_np(ids[i], threads[i].name);
  }
  for (int i = 0; i < kCount; ++i) pthread_join(ids[i], NULL);
  return 0;
}
