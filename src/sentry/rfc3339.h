// Points in time as V1 and transactions have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sentry_prof::sentry {

struct Rfc3339Time {
  int64_t unix_s = 0;
  uint32_t ns = 0;  // behind unix_s

  double seconds() const { return static_cast<double>(unix_s) + ns / 1e9; }
};

// "2026-01-15T12:00:00.123456Z" or with an offset ("+01:00"); a blank may stand for the T (RFC
// 3339, section 5.6), the second may be 60. More than nine digits of a second are cut. Nothing if
// it is no date.
std::optional<Rfc3339Time> read_rfc3339(std::string_view text);

// Unix nanoseconds of "2026-01-15T12:00:00.123456Z" or with an offset ("+01:00"): read_rfc3339() of
// a time from 1970 on. Nothing before, after 2261, or if it is no date.
std::optional<uint64_t> parse_rfc3339(std::string_view text);

}  // namespace sentry_prof::sentry
