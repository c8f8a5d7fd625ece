// Signals as file descriptor events.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

#include <optional>

namespace sentry_prof::os {

// Blocks SIGINT, SIGTERM, and unless they were ignored (as under nohup) SIGHUP and SIGQUIT for the
// whole process and makes them readable, even if SIGINT or SIGTERM was ignored before; ignores
// SIGPIPE and SIGXFSZ, and SIGCHLD is no more ignored. Of a launched command also SIGUSR1, SIGUSR2
// and SIGWINCH, by which servers reload, reopen their logs or end: is_of_command().
// Must run before any thread is started.
class SignalSet {
 public:
  static Result<SignalSet> install(bool has_command = false);
  static bool is_of_command(int signal);
  int fd() const { return fd_.get(); }
  struct Taken {
    int number = 0;
    // Of the terminal, not sent by kill(): ^C, which the whole foreground group gets, or the
    // hang-up, which only the session's leader gets (Linux, drivers/tty/tty_jobctrl.c).
    bool is_from_kernel = false;
    bool is_own = false;  // sent by this process, to a group it belongs to
  };
  // The next pending signal.
  std::optional<Taken> take() const;
  // Whether this process was started with `signal` (SIGINT or SIGTERM) ignored, and so what it
  // launches ignores it, too, unless it says otherwise itself.
  bool is_ignored_by_children(int signal) const;
  // From now on those signals have their default action, but for SIGQUIT, which is a launched
  // command's.
  void let_next_one_kill() const;
  // Takes that back: from now on they are readable from fd() again.
  void hold_again() const;

 private:
  explicit SignalSet(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// SIGPIPE and SIGXFSZ are ignored from now on: writing to a closed pipe or past RLIMIT_FSIZE is an
// errno, not our death. Part of install(), for what needs no more of it.
void make_write_signals_errors();
// In a child before exec: dispositions and mask as they were before install().
void restore_signals_for_exec();
// Ends this process by `signal` with its default action.
[[noreturn]] void die_by_signal(int signal);

}  // namespace sentry_prof::os
