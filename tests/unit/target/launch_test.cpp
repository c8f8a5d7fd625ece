#include "target/launch.h"

#include "os/limits.h"
#include "os/signals.h"
#include "support/catch2.h"
#include "unit/os/scratch.h"

#include <cerrno>
#include <cstdlib>

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace sentry_prof;
using target::LaunchedChild;

namespace {

bool has_ended(const LaunchedChild& child, int timeout_ms) {
  pollfd ended{child.pidfd().get(), POLLIN, 0};
  return ::poll(&ended, 1, timeout_ms) == 1;
}

}  // namespace

TEST_CASE("The CPU time of a command that has ended is known before its end is taken") {
  auto child =
      LaunchedChild::start({"/bin/sh", "-c", "(while [ $((i += 1)) -lt 100000 ]; do :; done)"});
  REQUIRE(child);
  CHECK(child->cpu_time_ns() == 0);
  REQUIRE(child->release());
  REQUIRE(has_ended(*child, 20'000));
  CHECK(child->cpu_time_ns() > 10'000'000);
  CHECK(child->wait().value() == 0);
  CHECK(child->cpu_time_ns() == 0);
}

TEST_CASE("A launched command runs only once it is released") {
  const test::ScratchDirectory scratch;
  auto child = LaunchedChild::start({"/bin/sh", "-c", "echo ran > " + (scratch / "trace")});
  REQUIRE(child);
  CHECK_FALSE(has_ended(*child, 50));
  CHECK_FALSE(child->has_ended());
  CHECK_FALSE(std::filesystem::exists(scratch / "trace"));
  const auto exec_error = child->release();
  REQUIRE(exec_error);
  CHECK(*exec_error == 0);
  REQUIRE(has_ended(*child, 10'000));
  CHECK(child->has_ended());
  const auto status = child->wait();
  REQUIRE(status);
  CHECK(*status == 0);
  CHECK(child->has_ended());
  CHECK(test::read_text(scratch / "trace") == "ran\n");
}

TEST_CASE("A command's exit status and signal come through, once") {
  auto exits = LaunchedChild::start({"sh", "-c", "exit 42"});
  REQUIRE(exits);
  REQUIRE(exits->release() == 0);
  const auto status = exits->wait();
  REQUIRE(status);
  CHECK(WIFEXITED(*status));
  CHECK(WEXITSTATUS(*status) == 42);
  CHECK_FALSE(exits->wait());
  CHECK_FALSE(exits->release());

  auto dies = LaunchedChild::start({"sh", "-c", "kill -TERM $$"});
  REQUIRE(dies);
  REQUIRE(dies->release() == 0);
  CHECK(WTERMSIG(*dies->wait()) == SIGTERM);
}

TEST_CASE("A command that cannot be run gives exec's errno") {
  const test::ScratchDirectory scratch;
  test::write_text(scratch / "no-program", "text");
  // exec gives EACCES for a command not found if PATH names a directory that may not be searched.
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/usr/bin:/bin", 1);
  const auto exec_errno = [](const std::string& program) {
    auto child = LaunchedChild::start({program});
    const int error_number = child ? child->release().value_or(-1) : -1;
    CHECK(child->wait());
    return error_number;
  };
  CHECK(exec_errno("no-such-command-anywhere") == ENOENT);
  CHECK(exec_errno(scratch / "missing") == ENOENT);
  CHECK(exec_errno(scratch / "no-program") == EACCES);
  CHECK(exec_errno(scratch.path().string()) == EACCES);
  ::setenv("PATH", path.c_str(), 1);
}

TEST_CASE("An empty command is refused") {
  CHECK(LaunchedChild::start({}).error().code == ErrorCode::InvalidArgument);
}

TEST_CASE("A child that was never released is ended and reaped") {
  int pid = 0;
  {
    const auto child = LaunchedChild::start({"sleep", "1000"});
    REQUIRE(child);
    pid = child->pid();
    CHECK(::kill(pid, 0) == 0);
  }
  CHECK(::kill(pid, 0) != 0);
  CHECK(errno == ESRCH);
}

TEST_CASE("Moving a launched child leaves it alone, assigning over one ends it") {
  auto first = LaunchedChild::start({"true"});
  auto second = LaunchedChild::start({"true"});
  REQUIRE(first);
  REQUIRE(second);
  const int first_pid = first->pid();
  const int second_pid = second->pid();
  LaunchedChild moved = std::move(*first);
  CHECK(moved.pid() == first_pid);
  CHECK(::kill(first_pid, 0) == 0);
  moved = std::move(*second);
  CHECK(moved.pid() == second_pid);
  CHECK(::kill(first_pid, 0) != 0);
  CHECK(moved.release() == 0);
  CHECK(moved.wait() == 0);
}

TEST_CASE("A child that was killed before its release is told, without SIGPIPE for us") {
  auto child = LaunchedChild::start({"true"});
  REQUIRE(child);
  ::kill(child->pid(), SIGKILL);
  REQUIRE(has_ended(*child, 10'000));
  const auto released = child->release();
  REQUIRE_FALSE(released);
  CHECK(released.error().code == ErrorCode::Gone);
  CHECK(WTERMSIG(*child->wait()) == SIGKILL);
}

TEST_CASE("The command never runs if the profiler dies before it says go") {
  const test::ScratchDirectory scratch;
  int pids[2];
  REQUIRE(::pipe(pids) == 0);
  const int status = test::status_of_child([&] {
    auto child = LaunchedChild::start({"touch", scratch / "ran"});
    const int pid = child ? child->pid() : 0;
    if (::write(pids[1], &pid, sizeof(pid)) != sizeof(pid)) return 1;
    ::close(pids[1]);
    ::raise(SIGKILL);
    return 2;
  });
  CHECK(WIFSIGNALED(status));
  int pid = 0;
  REQUIRE(::read(pids[0], &pid, sizeof(pid)) == sizeof(pid));
  // The orphan holds the pipe's write end until it ends.
  ::close(pids[1]);
  pollfd end{pids[0], POLLIN, 0};
  REQUIRE(::poll(&end, 1, 10'000) == 1);
  char byte = 0;
  CHECK(::read(pids[0], &byte, 1) == 0);
  ::close(pids[0]);
  CHECK_FALSE(std::filesystem::exists(scratch / "ran"));
}

TEST_CASE("The command starts with the signals and limits that the profiler started with") {
  const test::ScratchDirectory scratch;
  const int status = test::status_of_child([&] {
    if (!os::SignalSet::install()) return 1;
    os::raise_open_file_limit(0);
    auto child =
        LaunchedChild::start({"sh", "-c",
                              "grep -E 'Sig(Blk|Ign)|SigIgn' /proc/self/status > " +
                                  (scratch / "signals") + "; ulimit -n > " + (scratch / "limit")});
    return child && child->release() == 0 && child->wait() == 0 ? 0 : 2;
  });
  REQUIRE(status == 0);
  const auto bits = [&](const std::string& key) {
    const std::string text = test::read_text(scratch / "signals");
    return std::stoull(text.substr(text.find(key) + key.size()), nullptr, 16);
  };
  CHECK((bits("SigBlk:") & (1u << (SIGINT - 1) | 1u << (SIGTERM - 1))) == 0);
  CHECK((bits("SigIgn:") & 1u << (SIGPIPE - 1)) == 0);
  const int limit = test::status_of_child([&] {
    return std::system(("test $(ulimit -n) = $(cat " + (scratch / "limit") + ")").c_str());
  });
  CHECK(limit == 0);
}
