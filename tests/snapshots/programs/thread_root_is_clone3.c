// gcc -O2 -static -pthread. glibc states the end of a thread's stack in clone3: return address
// undefined.
#include <pthread.h>
static void* run(void* argument) {
  __asm__ volatile("int3");
  return argument;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, run, NULL);
  return pthread_join(thread, NULL);
}
