// Variables of the environment.
#pragma once

#include <string>
#include <string_view>

namespace sentry_prof::cli {

// Empty if it is not set.
std::string environment_variable(const char* name);

// "1", "true", "t", "yes", "y" or "on" in whatever case: what Sentry's SDKs take for true.
bool is_yes(std::string_view value);

}  // namespace sentry_prof::cli
