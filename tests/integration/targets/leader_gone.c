// leader_gone [WALL_SECONDS]: the main thread ends at once, another one is busy in burn_on.
#include "work.h"

#include <pthread.h>

static double g_end;

TARGET_FUNCTION void* burn_on(void* unused) {
  while (wall_seconds() < g_end) burn(100000, 11);
  exit(0);
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  g_end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  if (pthread_create(&thread, NULL, burn_on, NULL) != 0) return 1;
  pthread_exit(NULL);
}
