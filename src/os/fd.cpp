#include "os/fd.h"

#include <poll.h>

namespace sentry_prof::os {

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace sentry_prof::os
