// Clocks that a time namespace sets off against the host's (time_namespaces(7)).
#pragma once

#include <cstdint>
#include <string_view>

namespace sentry_prof::os {

// How far CLOCK_MONOTONIC is ahead of the host's; negative where it is behind. `text` is that of
// /proc/PID/timens_offsets: a line "monotonic SECONDS NANOSECONDS". 0 if it has no such line.
int64_t monotonic_offset_ns(std::string_view text);

}  // namespace sentry_prof::os
