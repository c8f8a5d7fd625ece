// syscalls [WALL_SECONDS]: reads /dev/zero in a loop, in read_zeros. Nearly all of its time is
// spent in the kernel and belongs to that function's stack.
#include "work.h"

#include <fcntl.h>
#include <unistd.h>

static char g_buffer[1 << 20];

TARGET_FUNCTION void read_zeros(int fd, double end) {
  while (wall_seconds() < end) {
    if (read(fd, g_buffer, sizeof g_buffer) < 0) exit(1);
  }
}

int main(int argc, char** argv) {
  const double end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 1;
  read_zeros(fd, end);
  close(fd);
  return 0;
}
