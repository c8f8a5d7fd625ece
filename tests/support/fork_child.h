// fork() for tests, which end their children by kill().
#pragma once

#include <stdexcept>

#include <unistd.h>

namespace sentry_prof::test {

// As fork(), but throws where no process can be had: kill(-1, SIGKILL) would end everything that
// the user runs; for root, the machine.
inline pid_t fork_child() {
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  return pid;
}

}  // namespace sentry_prof::test
