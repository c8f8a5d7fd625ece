#include "os/terminal.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

// /dev/tty stands for the terminal of whoever opens it (Linux: Documentation/admin-guide/devices).
bool is_dev_tty(const struct stat& file) { return file.st_rdev == makedev(5, 0); }

bool may_be_terminal(const char* path, const struct stat& terminal) {
  struct stat file = {};
  if (::stat(path, &file) != 0) return errno != ENOENT;
  if (!S_ISCHR(file.st_mode)) return false;
  return file.st_rdev == terminal.st_rdev || is_dev_tty(file);
}

}  // namespace

bool is_capable_terminal(int fd) {
  const char* kind = std::getenv("TERM");
  return ::isatty(fd) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

bool is_in_foreground(int fd) {
  const pid_t foreground = ::tcgetpgrp(fd);
  return foreground == -1 || foreground == ::getpgrp();  // -1: not our controlling terminal
}

unsigned terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

TerminalLine::TerminalLine(int fd)
    : fd_(fd),
      own_(::open(fmt::format("/proc/self/fd/{}", fd).c_str(),
                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {}

bool TerminalLine::write(std::string_view bytes) const {
  if (own_.is_open()) return ::write(own_.get(), bytes.data(), bytes.size()) > 0;
  pollfd room{fd_, POLLOUT, 0};
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return false;
  return ::write(fd_, bytes.data(), bytes.size()) > 0;
}

bool shares_terminal(int pid, int fd) {
  struct stat terminal = {};
  if (::fstat(fd, &terminal) != 0 || is_dev_tty(terminal)) return true;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (may_be_terminal(fmt::format("/proc/{}/fd/{}", pid, stream).c_str(), terminal)) return true;
  }
  return false;
}

}  // namespace sentry_prof::os
