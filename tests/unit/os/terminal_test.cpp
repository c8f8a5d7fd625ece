#include "os/terminal.h"

#include "support/catch2.h"
#include "unit/os/scratch.h"

#include <cstdlib>

#include <fcntl.h>
#include <sys/ioctl.h>

using namespace sentry_prof;
using test::status_of_child;

namespace {

// A pseudo-terminal that is nobody's controlling terminal; -1 where there are none.
int open_terminal() {
  const int leader = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (leader < 0 || ::grantpt(leader) != 0 || ::unlockpt(leader) != 0) return -1;
  return ::open(::ptsname(leader), O_RDWR | O_NOCTTY);
}

bool redirect(int fd) {
  return ::dup2(fd, STDOUT_FILENO) == STDOUT_FILENO && ::dup2(fd, STDERR_FILENO) == STDERR_FILENO;
}

}  // namespace

TEST_CASE("A terminal is drawn on unless it is dumb, a file never") {
  CHECK(status_of_child([] {
          const int terminal = open_terminal();
          if (terminal < 0) return 1;
          ::setenv("TERM", "xterm", 1);
          if (!os::is_capable_terminal(terminal)) return 2;
          if (os::is_capable_terminal(::open("/dev/null", O_WRONLY))) return 3;
          ::setenv("TERM", "dumb", 1);
          return os::is_capable_terminal(terminal) ? 4 : 0;
        }) == 0);
}

TEST_CASE("A terminal says how wide it is, a file does not") {
  const int terminal = open_terminal();
  REQUIRE(terminal >= 0);
  const winsize size{24, 40, 0, 0};
  REQUIRE(::ioctl(terminal, TIOCSWINSZ, &size) == 0);
  CHECK(os::terminal_columns(terminal) == 40);
  const int null = ::open("/dev/null", O_WRONLY);
  CHECK(os::terminal_columns(null) == 0);
  ::close(null);
  ::close(terminal);
}

TEST_CASE("A process shares our terminal if it has it as standard output or error") {
  CHECK(status_of_child([] {
          const int terminal = open_terminal();
          const int other_terminal = open_terminal();
          const int null = ::open("/dev/null", O_WRONLY);
          if (terminal < 0 || other_terminal < 0 || null < 0) return 1;
          if (!redirect(null) || os::shares_terminal(::getpid(), terminal)) return 2;
          if (!redirect(other_terminal) || os::shares_terminal(::getpid(), terminal)) return 3;
          ::dup2(terminal, STDERR_FILENO);
          if (!os::shares_terminal(::getpid(), terminal)) return 4;
          ::dup2(terminal, STDOUT_FILENO);
          ::close(STDERR_FILENO);
          return os::shares_terminal(::getpid(), terminal) ? 0 : 5;
        }) == 0);
}
