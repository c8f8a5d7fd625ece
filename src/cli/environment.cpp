#include "cli/environment.h"

#include "base/ascii.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace sentry_prof::cli {

namespace {

constexpr std::array<std::string_view, 6> kYes = {"1", "true", "t", "yes", "y", "on"};

}  // namespace

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_yes(std::string_view value) {
  return std::find(kYes.begin(), kYes.end(), to_lower_ascii(value)) != kYes.end();
}

Result<bool> is_verbose(bool is_option_set, bool is_quiet) {
  if (is_option_set && is_quiet) {
    return fail(ErrorCode::InvalidArgument,
                "--quiet and --verbose exclude each other: give one of them");
  }
  return is_option_set || (!is_quiet && is_yes(environment_variable("SENTRY_DEBUG")));
}

}  // namespace sentry_prof::cli
