// Resource limits.
#pragma once

#include <cstdint>

namespace sentry_prof::os {

// Raises RLIMIT_NOFILE's soft limit as far as this process may (the hard limit; root: fs.nr_open,
// if `wanted` needs it) and returns what it is now. Commands are forked before this: a program that
// loops over all descriptors, or uses select(), must not see our limit.
uint64_t raise_open_file_limit(uint64_t wanted);

// Descriptors of this process that are open; the soft limit if they cannot be listed.
uint64_t open_file_count();

}  // namespace sentry_prof::os
