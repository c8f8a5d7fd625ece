// Numbers that no other process gets.
#pragma once

#include <cstdint>

namespace sentry_prof::os {

// From the kernel's source; where that is forbidden (seccomp) the clock. For names, not for
// secrets.
uint64_t random_u64();

}  // namespace sentry_prof::os
