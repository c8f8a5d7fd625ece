// Signals as file descriptor events.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <optional>

#include <signal.h>

namespace sentry_prof::os {

// Blocks for the whole process, and makes readable, what asks for an end: SIGINT and SIGTERM, even
// if they were ignored before, and unless they were (as SIGHUP is under nohup) SIGHUP, SIGQUIT,
// SIGPWR and those of timers and of the limit of CPU time (SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU);
// and apart from them SIGUSR1, SIGUSR2, SIGWINCH and SIGIO, by which servers reload or reopen their
// logs: these are a launched command's, and end nothing where there is none. Ignores SIGPIPE and
// SIGXFSZ, and SIGCHLD is no more ignored. Must run before any thread is started.
class SignalSet {
 public:
  static Result<SignalSet> install();
  int fd() const { return fd_.get(); }
  int command_fd() const { return command_fd_.get(); }
  struct Taken {
    int number = 0;
    // Of the terminal, not sent by kill(): ^C, which the whole foreground group gets, or the
    // hang-up, which only the session's leader gets (Linux, drivers/tty/tty_jobctrl.c).
    bool is_from_kernel = false;
    uint32_t sender_pid = 0;  // 0: the kernel, or a process that we do not see

    // Of a timer that who executed us has set (alarm(2), setitimer(2)), or of the limit of CPU
    // time: nobody is impatient.
    bool is_of_timer() const;
    // That limit's: it counts the CPU time of this process only.
    bool is_of_cpu_limit() const { return is_from_kernel && number == SIGXCPU; }
  };
  // The next pending signal. One of a timer is given once, and ignored from then on: past the limit
  // of CPU time the kernel sends another SIGXCPU with each further second of it.
  std::optional<Taken> take() const;
  // Likewise, of those that are the command's.
  std::optional<Taken> take_of_command() const { return read_from(command_fd_); }
  // Whether this process was started with `signal` (SIGINT or SIGTERM) ignored, and so what it
  // launches ignores it, too, unless it says otherwise itself.
  bool is_ignored_by_children(int signal) const;
  // From now on those signals have their default action, but for SIGQUIT, which is a launched
  // command's.
  void let_next_one_kill() const;
  // Takes that back: from now on they are readable from fd() again.
  void hold_again() const;

 private:
  SignalSet(Fd fd, Fd command_fd) : fd_(std::move(fd)), command_fd_(std::move(command_fd)) {}
  static std::optional<Taken> read_from(const Fd& fd);

  Fd fd_, command_fd_;
};

// SIGXFSZ is ignored from now on: writing past RLIMIT_FSIZE is an errno, not our death that leaves
// a temporary file. Part of install(); before it for what comes before, or needs no more of it.
void make_size_limit_an_error();
// Likewise of SIGPIPE and a pipe that nobody reads any more.
void make_broken_pipe_an_error();
// In a child before exec: dispositions and mask as they were when this process started.
void restore_signals_for_exec();
// Ends this process by `signal` with its default action.
[[noreturn]] void die_by_signal(int signal);

}  // namespace sentry_prof::os
