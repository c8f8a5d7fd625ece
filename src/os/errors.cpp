#include "os/errors.h"

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

namespace sentry_prof::os {

std::string describe_errno(int error_number) {
  const char* name = strerrorname_np(error_number);
  const char* description = strerrordesc_np(error_number);
  if (name == nullptr || description == nullptr) return fmt::format("error {}", error_number);
  return fmt::format("{}: {}", name, description);
}

ErrorCode error_code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::NotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::PermissionDenied;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::LimitExceeded;
    case ESRCH:
      return ErrorCode::Gone;
    default:
      return ErrorCode::Io;
  }
}

tl::unexpected<Error> fail_with_errno(int error_number, const std::string& what) {
  return fail(error_code_of(error_number),
              fmt::format("{}: {}", what, describe_errno(error_number)));
}

}  // namespace sentry_prof::os
