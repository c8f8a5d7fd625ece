// Points in time as V1 has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sentry_prof::sentry {

// Unix nanoseconds of "2026-01-15T12:00:00.123456Z" or with an offset ("+01:00"); a blank may stand
// for the T (RFC 3339, section 5.6). More than nine digits of a second are cut. Nothing before
// 1970, after 2262, or if it is no date.
std::optional<uint64_t> parse_rfc3339(std::string_view text);

}  // namespace sentry_prof::sentry
