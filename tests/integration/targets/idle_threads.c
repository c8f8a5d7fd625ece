// idle_threads COUNT [WALL_SECONDS]: COUNT threads that sleep. Prints "ready" once all of them run;
// ends after WALL_SECONDS (default 10). For attaching to very many threads.
#include "work.h"

#include <pthread.h>

static double g_end;

TARGET_FUNCTION void* sleep_until_end(void* unused) {
  const double left = g_end - wall_seconds();
  if (left > 0) sleep_seconds(left);
  return unused;
}

int main(int argc, char** argv) {
  const int count = (int)number_argument(argc, argv, 1, 100);
  g_end = wall_seconds() + number_argument(argc, argv, 2, 10.0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  for (int i = 0; i < count; ++i) {
    pthread_t id;
    if (pthread_create(&id, &attributes, sleep_until_end, NULL) != 0) {
      fprintf(stderr, "idle_threads: only %d threads\n", i);
      return 1;
    }
    pthread_detach(id);
  }
  puts("ready");
  fflush(stdout);
  sleep_until_end(NULL);
  return 0;
}
