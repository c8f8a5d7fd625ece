#include "upload/stop_event.h"

#include "os/errors.h"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace sentry_prof::upload {

Result<StopEvent> StopEvent::create() {
  os::Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (fd.get() < 0) {
    return fail(ErrorCode::LimitExceeded, "eventfd: " + os::describe_errno(errno));
  }
  return StopEvent(std::move(fd));
}

void StopEvent::set() const {
  const uint64_t one = 1;
  // Fails only where it is set already.
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof(one));
}

}  // namespace sentry_prof::upload
