// What Sentry takes as the name of a release or an environment.
#pragma once

#include "sentry_prof/result.h"

#include <string_view>

namespace sentry_prof {

// InvalidArgument with a sentence that begins with what is wrong: "has 201 bytes, Sentry takes
// ...". Source: validate_release and validate_environment of Sentry's release parser, which its
// server and its API use; blanks alone are refused by the server's own check of releases.
Result<void> check_release(std::string_view release);
Result<void> check_environment(std::string_view environment);

}  // namespace sentry_prof
