#include "os/standard_streams.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace sentry_prof::os {

int open_nothing(int flags) {
  const int fd = ::open("/dev/null", flags);
  return fd != -1 ? fd : ::open("/", O_PATH);
}

bool ensure_standard_fds() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // Those below are open, so that the lowest free number is this one. The other way round than it
    // would be used: who writes to a closed standard output gets an error, as it should be.
    if (open_nothing(fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
  }
  return true;
}

bool is_writable(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags != -1 && (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace sentry_prof::os
