// The terminal that a user looks at.
#pragma once

namespace sentry_prof::os {

// Whether `fd` is a terminal that knows escape codes (TERM is not "dumb").
bool is_capable_terminal(int fd);

// Whether this process may draw on the terminal `fd` now: false for one in the background of it.
bool is_in_foreground(int fd);

// Its width in characters; 0 if it does not say.
unsigned terminal_columns(int fd);

// Whether standard output or error of process `pid` is the terminal `fd` of this process. True also
// where that cannot be known.
bool shares_terminal(int pid, int fd);

}  // namespace sentry_prof::os
