// The file descriptors 0, 1 and 2.
#pragma once

namespace sentry_prof::os {

// Opens /dev/null for those of 0, 1 and 2 that are closed: else the next file to be opened would
// get such a number, and a message to stderr would end up in it. Must run before anything is
// opened. False if one stayed closed.
bool ensure_standard_fds();

}  // namespace sentry_prof::os
