// thread_churn [COUNT]: creates and ends COUNT threads (default 2000), four at a time, each of
// which works about a millisecond of CPU time in churn_work. Ends when all have.
#include "work.h"

#include <pthread.h>

enum { kAtATime = 4 };

TARGET_FUNCTION void* churn_work(void* unused) {
  burn(ITERATIONS_OF_5_MS / 5, 43);
  return unused;
}

int main(int argc, char** argv) {
  const int count = (int)number_argument(argc, argv, 1, 2000);
  pthread_t ids[kAtATime];
  for (int done = 0; done < count;) {
    int started = 0;
    for (; started < kAtATime && done + started < count; ++started) {
      if (pthread_create(&ids[started], NULL, churn_work, NULL) != 0) return 1;
    }
    for (int i = 0; i < started; ++i) pthread_join(ids[i], NULL);
    done += started;
  }
  printf("%d threads\n", count);
  return 0;
}
