// Dates as HTTP headers have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sentry_prof::upload {

// Unix seconds, of any of the three forms that a recipient has to accept (RFC 9110, section 5.6.7):
// "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994".
// The day's name is not compared. Nothing if it is none of them, or no real date.
std::optional<int64_t> parse_http_date(std::string_view text);

}  // namespace sentry_prof::upload
