// missing_pages [WALL_SECONDS]: burns CPU in a deep recursion on a stack some pages of which never
// come: whoever touches them waits for an answer of userfaultfd(2), which nobody gives. They lie
// beyond the 64 KiB that the kernel copies. Exit status 2 if that is not permitted.
#define _GNU_SOURCE
#include "work.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (4u << 20)
#define DISTANCE_BYTES (256u << 10)
#define MISSING_BYTES (128u << 10)

static double g_end;

TARGET_FUNCTION void lose_pages_above(const char* here) {
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register pages = {.mode = UFFDIO_REGISTER_MODE_MISSING};
  const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  if (fd < 0) _exit(2);
  pages.range.start = ((uintptr_t)here + DISTANCE_BYTES) & ~(uintptr_t)4095;
  pages.range.len = MISSING_BYTES;
  if (ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &pages) != 0 ||
      madvise((void*)(uintptr_t)pages.range.start, MISSING_BYTES, MADV_DONTNEED) != 0) {
    _exit(1);
  }
}

// Its frames cannot be returned to.
TARGET_FUNCTION void leaf(void) {
  const char here = 0;
  lose_pages_above(&here);
  puts("lost");
  fflush(stdout);
  while (wall_seconds() < g_end) burn(100000, 59);
  _exit(0);
}

// By pointer, or a compiler may make a loop of it.
static int (*volatile g_descend)(int);

TARGET_FUNCTION int descend(int depth) {
  volatile char room[200];
  room[depth % 200] = (char)depth;  // any of them: none can be left out
  if (depth == 0) {
    leaf();
    return 0;
  }
  return g_descend(depth - 1) + room[depth % 200];
}

static void* run(void* unused) {
  (void)unused;
  g_descend = descend;
  descend(2500);
  return NULL;
}

int main(int argc, char** argv) {
  g_end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  void* const stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_t thread;
  if (stack == MAP_FAILED || pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstack(&attributes, stack, STACK_BYTES) != 0 ||
      pthread_create(&thread, &attributes, run, NULL) != 0) {
    return 1;
  }
  return pthread_join(thread, NULL);
}
