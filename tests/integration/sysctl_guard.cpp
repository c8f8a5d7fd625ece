#include "sysctl_guard.h"

#include "support/fork_child.h"

#include <fstream>
#include <stdexcept>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::testing {

namespace {

std::string read_setting(const std::string& path) {
  std::string text;
  std::getline(std::ifstream(path), text);
  return text;
}

[[noreturn]] void keep(int pipe_fd, const std::string& path, const std::string& old_value) {
  ::setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  char unused = 0;
  while (::read(pipe_fd, &unused, 1) > 0) {
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const ssize_t written = ::write(fd, old_value.data(), old_value.size());
  ::_exit(written == static_cast<ssize_t>(old_value.size()) ? 0 : 1);
}

}  // namespace

SysctlGuard::SysctlGuard(const std::string& path, const std::string& value) {
  const std::string old_value = read_setting(path);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  keeper_ = test::fork_child();
  if (keeper_ == 0) {
    ::close(ends[1]);
    keep(ends[0], path, old_value);
  }
  ::close(ends[0]);
  keeper_waits_for_ = ends[1];
  std::ofstream(path) << value << std::flush;
  is_set_ = read_setting(path) == value;
}

SysctlGuard::~SysctlGuard() {
  ::close(keeper_waits_for_);
  ::waitpid(keeper_, nullptr, 0);
}

}  // namespace sentry_prof::testing
