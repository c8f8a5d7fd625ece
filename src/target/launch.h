// Starting a command that waits until the sampler is attached, then calls exec.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sentry_prof::target {

class LaunchedChild {
 public:
  // Forks; the child blocks before exec. Signal dispositions and mask of the child are those this
  // process had at its start, SIGPIPE included.
  static Result<LaunchedChild> start(const std::vector<std::string>& command);
  LaunchedChild(LaunchedChild&& other) noexcept;
  LaunchedChild& operator=(LaunchedChild&& other) noexcept;
  // A child that was never released is ended and reaped. One that was released is left alone.
  ~LaunchedChild();

  int pid() const { return pid_; }
  const os::Fd& pidfd() const { return pidfd_; }
  bool has_ended() const { return os::is_readable(pidfd_.get()); }
  // Of the command, once it has ended and before wait(), and of the children that it waited for;
  // else 0.
  uint64_t cpu_time_ns() const;

  // Lets the child exec. An exec that failed comes back as its errno (0: it runs now).
  Result<int> release();
  // Blocks until the child ends: its wait status, once.
  Result<int> wait();

 private:
  LaunchedChild() = default;
  void swap(LaunchedChild& other) noexcept;

  int pid_ = -1;
  os::Fd pidfd_;
  os::Fd go_;
  os::Fd exec_error_;
  bool was_released_ = false;
  bool was_reaped_ = false;
};

}  // namespace sentry_prof::target
