// errno as values of this project.
#pragma once

#include "sentry_prof/result.h"

#include <string>

namespace sentry_prof::os {

// "EACCES: Permission denied" and the like.
std::string describe_errno(int error_number);

// NotFound, PermissionDenied, LimitExceeded, Gone or, for everything else, Io.
ErrorCode error_code_of(int error_number);

// An error "`what`: EACCES: Permission denied".
[[nodiscard]] tl::unexpected<Error> fail_with_errno(int error_number, const std::string& what);

}  // namespace sentry_prof::os
