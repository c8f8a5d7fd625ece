#include "os/time_namespace.h"

#include "base/time_units.h"

#include <algorithm>
#include <charconv>

namespace sentry_prof::os {
namespace {

// Takes the number that comes behind blanks at the begin of `text`; 0 if there is none.
int64_t take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc() ? number : 0;
}

}  // namespace

int64_t monotonic_offset_ns(std::string_view text) {
  constexpr std::string_view kName = "monotonic ";
  // Of the kernel's own bound, KTIME_SEC_MAX / 2.
  constexpr int64_t kMax_s = INT64_MAX / 2 / static_cast<int64_t>(kNsPerSecond);
  const size_t line = text.find(kName);
  if (line == std::string_view::npos) return 0;
  text.remove_prefix(line + kName.size());
  const int64_t seconds = take_number(text);
  const int64_t rest_ns = take_number(text);
  const auto second_ns = static_cast<int64_t>(kNsPerSecond);
  const bool is_sound =
      seconds >= -kMax_s && seconds <= kMax_s && rest_ns >= 0 && rest_ns < second_ns;
  return is_sound ? seconds * second_ns + rest_ns : 0;
}

}  // namespace sentry_prof::os
