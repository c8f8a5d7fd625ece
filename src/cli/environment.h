// Variables of the environment.
#pragma once

#include "sentry_prof/result.h"

#include <string>
#include <string_view>

namespace sentry_prof::cli {

// Empty if it is not set.
std::string environment_variable(const char* name);

// "1", "true", "t", "yes", "y" or "on" in whatever case: what Sentry's SDKs take for true.
bool is_yes(std::string_view value);

// Of --verbose, else of SENTRY_DEBUG; --quiet wins over the variable. InvalidArgument: both
// options.
Result<bool> is_verbose(bool is_option_set, bool is_quiet);

}  // namespace sentry_prof::cli
