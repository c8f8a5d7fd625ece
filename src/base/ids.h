// Random ids. Uuid itself is public: include/sentry_prof/profile.h.
#pragma once

#include "sentry_prof/profile.h"

namespace sentry_prof {

// A random UUID, version 4 (RFC 4122, section 4.4), from the system's random source.
Uuid random_uuid_v4() noexcept;

}  // namespace sentry_prof
