// What a terminal shows.
#include "command_line.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sentry_prof::testing;

namespace {

// A program on a terminal of its own; what it shows there is kept.
class TerminalSession {
 public:
  explicit TerminalSession(std::vector<std::string> arguments) {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    // kill(-1) by root would end all that the machine runs.
    if (pid_ < 0) throw std::runtime_error("no pseudo-terminal to be had: is /dev/pts mounted?");
    if (pid_ == 0) {
      ::signal(SIGHUP, SIG_DFL);  // ignored where the tests run under nohup
      ::execvp(pointers[0], pointers.data());
      ::_exit(127);
    }
  }
  ~TerminalSession() {
    if (!has_ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;

  void type(const std::string& keys) { CHECK(::write(terminal_, keys.data(), keys.size()) > 0); }

  // Reads until the text appears; false if the program ends or a minute passes before.
  bool wait_for(std::string_view text) {
    return wait_until([&] { return !read_more() || shown_.find(text) != std::string::npos; }, 60) &&
           shown_.find(text) != std::string::npos;
  }

  // The program's terminal is gone: it gets SIGHUP. Its wait status, or -1 if it goes on.
  int hang_up() {
    ::close(std::exchange(terminal_, -1));
    int status = -1;
    has_ended_ = wait_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, 10);
    return has_ended_ ? status : -1;
  }

  // Its wait status, or -1 if a minute passes before.
  int wait_for_end() {
    wait_until([&] { return !read_more(); }, 60);
    int status = -1;
    has_ended_ = wait_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
    return has_ended_ ? status : -1;
  }

  const std::string& shown() const { return shown_; }

 private:
  // What is there, or comes within a moment; false if nothing more can come.
  bool read_more() {
    pollfd readable{.fd = terminal_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, 50) == 0) return true;
    char buffer[4096];
    const ssize_t count = ::read(terminal_, buffer, sizeof buffer);
    if (count > 0) shown_.append(buffer, static_cast<size_t>(count));
    return count > 0;  // EIO: nobody has the terminal open any more
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  bool has_ended_ = false;
  std::string shown_;
};

}  // namespace

TEST_CASE("^C on a terminal reaches the command once, and the profile is written", "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string script =
      "trap 'echo interrupted' INT; trap 'exit 9' TERM; echo ready; i=0; "
      "while [ $i -lt 150000 ]; do i=$((i + 1)); done; exit 4";
  TerminalSession session({sentry_prof_path(), "record", "-F", "997", "-o",
                           directory.file("out.json"), "--", "sh", "-c", script});
  REQUIRE(session.wait_for("ready"));
  session.type("\x03");
  const int status = session.wait_for_end();
  INFO(session.shown());
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 4);
  const size_t first = session.shown().find("interrupted");
  REQUIRE(first != std::string::npos);
  CHECK(session.shown().find("interrupted", first + 1) == std::string::npos);
  CHECK(LoadedProfile::load(directory.file("out.json")).busy_samples().size() > 10);
}

TEST_CASE("^C on a terminal at any moment ends a command that does not ask for it", "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  for (int i = 0; i < 60; ++i) {
    TerminalSession session({"sh", "-c", R"(echo ready; exec "$0" record -o "$1" -- sleep 5)",
                             sentry_prof_path(), directory.file("out.json")});
    REQUIRE(session.wait_for("ready"));
    const double delay_s = 0.0002 * i;
    sleep_for(delay_s);
    session.type("\x03");
    const int status = session.wait_for_end();
    INFO(delay_s << " s: " << session.shown());
    const bool is_by_signal = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
    CHECK((is_by_signal || (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT)));
  }
}

TEST_CASE("^C on a terminal ends a shell's loop, if the recorded command dies of it",
          "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  // Of one command an exit status; of the other the signal, which ends the shell, too.
  const auto [command, shown_after] =
      GENERATE(std::pair{"trap 'exit 3' INT; ", true}, std::pair{"", false});
  // Each has used some of the CPU before it says so, however busy the machine is.
  const std::string script =
      std::string("for i in 1 2; do \"$0\" record -F 997 -o \"$1\" -- sh -c \"") + command +
      "i=0; while [ \\$i -lt 100000 ]; do i=\\$((i + 1)); done; echo begun $i; "
      "while :; do :; done\"; echo status $?; done";
  TerminalSession session({"bash", "-c", script, sentry_prof_path(), directory.file("out.json")});
  REQUIRE(session.wait_for("begun 1"));
  session.type("\x03");
  if (shown_after) {
    REQUIRE(session.wait_for("begun 2"));
    session.type("\x03");
  }
  const int status = session.wait_for_end();
  INFO(session.shown());
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) == !shown_after);
  CHECK((session.shown().find("status") != std::string::npos) == shown_after);
  CHECK(LoadedProfile::load(directory.file("out.json")).busy_samples().size() > 5);
}

TEST_CASE(
    "A terminal that is closed ends the command and the recording, and the profile is written",
    "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string pid_file = directory.file("pid");
  TerminalSession session({sentry_prof_path(), "record", "-F", "997", "-o",
                           directory.file("out.json"), "--", "sh", "-c",
                           "echo $$ > \"$0\"; i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; "
                           "echo ready; while :; do :; done",
                           pid_file});
  REQUIRE(session.wait_for("ready"));
  const int status = session.hang_up();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGHUP);
  CHECK(LoadedProfile::load(directory.file("out.json")).busy_samples().size() > 5);
  pid_t command = -1;
  std::ifstream(pid_file) >> command;
  REQUIRE(command > 0);
  CHECK(::kill(command, 0) != 0);
}

namespace {

// What `sentry-prof record OPTIONS` shows on a terminal of the kind `term`.
std::string shown_on_terminal(const TemporaryDirectory& directory, const std::string& term,
                              const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {"env",    "TERM=" + term, sentry_prof_path(),
                                        "record", "-o",           directory.file("out.json")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  TerminalSession session(arguments);
  CHECK(session.wait_for_end() == 0);
  return session.shown();
}

bool has_live_line(const std::string& shown) {
  return shown.find("\r\x1b[K") != std::string::npos &&
         shown.find(" samples  ") != std::string::npos;
}

}  // namespace

TEST_CASE("A terminal shows a live line, a pipe or a dumb terminal does not", "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const std::vector<std::string> attach = {"-d", "1", "-p", std::to_string(target.pid())};
  const std::string shown = shown_on_terminal(directory, "xterm", attach);
  INFO(shown);
  CHECK(has_live_line(shown));
  const std::string dumb = shown_on_terminal(directory, "dumb", attach);
  CHECK(dumb.find('\x1b') == std::string::npos);
  CHECK(dumb.find("wrote") != std::string::npos);
  const CommandResult piped = run_sentry_prof(
      {"record", "-o", directory.file("out.json"), "-d", "1", "-p", std::to_string(target.pid())});
  CHECK(piped.standard_error.find('\x1b') == std::string::npos);
  CHECK(piped.standard_error.find('\r') == std::string::npos);
  check_says(piped, "wrote");
}

TEST_CASE("A terminal that is stopped does not stop the recording", "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  TerminalSession session({"env", "TERM=xterm", sentry_prof_path(), "record", "-d", "2", "-o",
                           directory.file("out.json"), "-p", std::to_string(target.pid())});
  REQUIRE(session.wait_for(" samples  "));
  session.type("\x13");
  CHECK(wait_until([&] { return std::ifstream(directory.file("out.json")).good(); }, 30));
  session.type("\x11");
  CHECK(session.wait_for_end() == 0);
  const size_t summary = session.shown().find(" samples in ");
  REQUIRE(summary != std::string::npos);
  const std::string_view before = std::string_view(session.shown()).substr(0, summary);
  CHECK(before.find('\n') == before.npos);  // the live line was not left there
  CHECK(before.rfind("\r\x1b[Ksentry-prof: ") != before.npos);
  CHECK(session.shown().find("wrote") != std::string::npos);
}

TEST_CASE(
    "A command that writes to the terminal has it for itself, one that does not leaves it to us",
    "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string spin = target_path("spin");
  const std::string loud = shown_on_terminal(
      directory, "xterm", {"--", "sh", "-c", "printf out; \"$0\" 1; printf put", spin});
  CHECK(loud.find("output") != std::string::npos);  // in one piece
  CHECK_FALSE(has_live_line(loud));
  const std::string silent = shown_on_terminal(
      directory, "xterm", {"--", "sh", "-c", "exec >/dev/null 2>&1; \"$0\" 1; true", spin});
  INFO(silent);
  CHECK(has_live_line(silent));
}
