// Signals as file descriptor events.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

#include <optional>

namespace sentry_prof::os {

// Blocks SIGINT, SIGTERM, SIGHUP (unless it was ignored, as under nohup) for the whole process and
// makes them readable, even if SIGINT or SIGTERM was ignored before; ignores SIGPIPE and SIGXFSZ.
// Must run before any thread is started.
class SignalSet {
 public:
  static Result<SignalSet> install();
  int fd() const { return fd_.get(); }
  struct Taken {
    int number = 0;
    // Sent by the kernel to the whole foreground group (^C), not by kill().
    bool is_from_terminal = false;
  };
  // The next pending signal.
  std::optional<Taken> take() const;
  // Whether this process was started with `signal` (SIGINT or SIGTERM) ignored, and so what it
  // launches ignores it, too, unless it says otherwise itself.
  bool is_ignored_by_children(int signal) const;
  // From now on SIGINT, SIGTERM and SIGHUP (unless it was ignored) have their default action.
  void let_next_one_kill() const;

 private:
  explicit SignalSet(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// In a child before exec: dispositions and mask as they were before install().
void restore_signals_for_exec();
// Ends this process by `signal` with its default action.
[[noreturn]] void die_by_signal(int signal);

}  // namespace sentry_prof::os
