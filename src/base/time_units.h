// Units of time.
#pragma once

#include <cstdint>

namespace sentry_prof {

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace sentry_prof
