// The file descriptors 0, 1 and 2.
#pragma once

namespace sentry_prof::os {

// /dev/null with `flags` (O_RDONLY, O_WRONLY, O_RDWR); in a chroot that has none a file that can be
// neither read nor written (EBADF). -1 if there is no descriptor left. To be closed by the caller.
int open_nothing(int flags);

// Opens nothing for those of 0, 1 and 2 that are closed: else the next file to be opened would
// get such a number, and a message to stderr would end up in it. Reading from 0, and writing to 1
// or 2, stays an error (EBADF). Must run before anything is opened. False if one stayed closed.
bool ensure_standard_fds();

// Whether `fd` is open for writing. False for those that ensure_standard_fds() opened.
bool is_writable(int fd);

}  // namespace sentry_prof::os
