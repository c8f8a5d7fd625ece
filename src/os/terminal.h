// The terminal that a user looks at.
#pragma once

#include "os/fd.h"

#include <string_view>

namespace sentry_prof::os {

// Whether `fd` is a terminal that knows escape codes (TERM is not "dumb").
bool is_capable_terminal(int fd);

// Whether this process may draw on the terminal `fd` now: false for one in the background of it.
bool is_in_foreground(int fd);

// Its width in characters; 0 if it does not say.
unsigned terminal_columns(int fd);

// Writing to the terminal `fd` without ever waiting for it.
class TerminalLine {
 public:
  explicit TerminalLine(int fd);
  // False if nothing was written: its output is stopped (^S), or whoever reads it is slow.
  bool write(std::string_view bytes) const;

 private:
  int fd_;
  // Of the same terminal, since O_NONBLOCK of `fd` itself would hold for all that have it from the
  // shell. Not open where that may not be: the terminal of another user (su), or no /proc.
  Fd own_;
};

// Whether standard output or error of process `pid` is the terminal `fd` of this process. True also
// where that cannot be known.
bool shares_terminal(int pid, int fd);

}  // namespace sentry_prof::os
