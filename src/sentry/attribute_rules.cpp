#include "sentry/attribute_rules.h"

#include "base/ascii.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace sentry_prof {

namespace {

constexpr size_t kMaxRelease_bytes = 200;
constexpr size_t kMaxEnvironment_bytes = 64;

bool is_refused(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '/' || c == '\\' || byte < ' ' || byte == 0x7f;
}

Result<void> check(std::string_view text, size_t max_bytes, std::string_view reserved) {
  if (text.size() > max_bytes) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("has {} bytes, Sentry takes at most {}", text.size(), max_bytes));
  }
  if (std::any_of(text.begin(), text.end(), is_refused)) {
    return fail(ErrorCode::InvalidArgument,
                "has a slash, a backslash or a control character, which Sentry refuses");
  }
  if (text == "." || text == ".." || equals_ignoring_case(text, reserved)) {
    return fail(ErrorCode::InvalidArgument, "is a name that Sentry refuses");
  }
  return {};
}

}  // namespace

Result<void> check_release(std::string_view release) {
  if (!release.empty() && release.find_first_not_of(' ') == release.npos) {
    return fail(ErrorCode::InvalidArgument, "is blank, which Sentry refuses");
  }
  return check(release, kMaxRelease_bytes, "latest");
}

Result<void> check_environment(std::string_view environment) {
  return check(environment, kMaxEnvironment_bytes, "none");
}

}  // namespace sentry_prof
