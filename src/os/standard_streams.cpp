#include "os/standard_streams.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace sentry_prof::os {

bool ensure_standard_fds() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // Those below are open, so that the lowest free number is this one.
    if (::open("/dev/null", O_RDWR) != fd) return false;
  }
  return true;
}

}  // namespace sentry_prof::os
