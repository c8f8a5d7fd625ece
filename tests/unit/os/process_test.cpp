// What concerns the whole process is tried in children, so that the test program stays as it is.
#include "os/process.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/limits.h"
#include "os/privileges.h"
#include "os/proc_text.h"
#include "os/signals.h"
#include "os/standard_streams.h"
#include "os/system_info.h"
#include "support/catch2.h"
#include "support/fork_child.h"
#include "unit/os/scratch.h"

#include <algorithm>
#include <filesystem>
#include <future>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sentry_prof;
using test::status_of_child;

TEST_CASE("Orphans are taken notice of, and nobody's own child") {
  CHECK(status_of_child([] {
          if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 1;
          int ends[2] = {};
          if (::pipe(ends) != 0) return 2;
          const auto leave_orphan = [&] {
            const pid_t parent = test::fork_child();
            if (parent == 0) {
              const pid_t orphan = test::fork_child();
              if (orphan == 0) ::_exit(0);
              ::_exit(::write(ends[1], &orphan, sizeof(orphan)) == sizeof(orphan) ? 5 : 6);
            }
            pid_t orphan = -1;
            if (::read(ends[0], &orphan, sizeof(orphan)) != sizeof(orphan)) ::_exit(3);
            while (!os::has_ended(parent) || !os::has_ended(orphan)) ::usleep(1000);
            return std::pair(parent, orphan);
          };
          const pid_t own = test::fork_child();
          if (own == 0) {
            ::pause();
            ::_exit(0);
          }
          const auto [first, second] = leave_orphan();
          os::reap_orphans(own);
          if (!os::is_gone(first) || !os::is_gone(second) || os::is_gone(own)) return 4;
          ::kill(own, SIGKILL);
          while (!os::has_ended(own)) ::usleep(1000);
          os::reap_orphans(own);
          int status = 0;
          return ::waitpid(own, &status, 0) == own && WTERMSIG(status) == SIGKILL ? 0 : 5;
        }) == 0);
}

TEST_CASE("Signals that end a run become readable") {
  CHECK(status_of_child([] {
          const auto signals = os::SignalSet::install();
          if (!signals) return 1;
          if (signals->take()) return 2;
          ::kill(::getpid(), SIGTERM);
          pollfd ready{signals->fd(), POLLIN, 0};
          if (::poll(&ready, 1, 5000) != 1) return 3;
          const auto taken = signals->take();
          if (!taken || taken->number != SIGTERM || taken->is_from_kernel) return 4;
          return signals->take() ? 5 : 0;
        }) == 0);
}

TEST_CASE("What is a launched command's is read apart from what ends a run") {
  CHECK(status_of_child([] {
          const auto signals = os::SignalSet::install();
          if (!signals) return 1;
          for (const int signal : {SIGUSR1, SIGUSR2, SIGWINCH, SIGIO}) {
            ::kill(::getpid(), signal);
            if (signals->take()) return 2;
            const auto taken = signals->take_of_command();
            if (!taken || taken->number != signal) return 3;
            if (taken->sender_pid != static_cast<uint32_t>(::getpid())) return 4;
          }
          return signals->take_of_command() ? 5 : 0;
        }) == 0);
}

TEST_CASE("A timer that goes off again and again is told once, and kills nobody") {
  CHECK(status_of_child([] {
          const auto signals = os::SignalSet::install();
          const itimerval every_10_ms{{0, 10'000}, {0, 10'000}};
          if (!signals || ::setitimer(ITIMER_REAL, &every_10_ms, nullptr) != 0) return 1;
          pollfd ready{signals->fd(), POLLIN, 0};
          if (::poll(&ready, 1, 5000) != 1) return 2;
          const auto taken = signals->take();
          if (!taken || taken->number != SIGALRM || !taken->is_of_timer()) return 3;
          if (::poll(&ready, 1, 50) != 0 || signals->take()) return 4;
          signals->let_next_one_kill();
          if (::poll(&ready, 1, 50) != 0) return 5;
          signals->hold_again();
          return signals->take() ? 6 : 0;
        }) == 0);
}

TEST_CASE("What asks for an end and was ignored stays so") {
  CHECK(status_of_child([] {
          ::signal(SIGXCPU, SIG_IGN);
          const auto signals = os::SignalSet::install();
          if (!signals) return 1;
          ::kill(::getpid(), SIGXCPU);
          if (signals->take()) return 2;
          for (const int signal : {SIGALRM, SIGVTALRM, SIGPROF, SIGPWR}) {
            ::kill(::getpid(), signal);
            const auto taken = signals->take();
            if (!taken || taken->number != signal || taken->is_of_timer()) return 3;
          }
          return 0;
        }) == 0);
}

TEST_CASE("SIGHUP stays ignored under nohup") {
  CHECK(status_of_child([] {
          ::signal(SIGHUP, SIG_IGN);
          const auto signals = os::SignalSet::install();
          if (!signals) return 1;
          ::kill(::getpid(), SIGHUP);
          return signals->take() ? 2 : 0;
        }) == 0);
}

TEST_CASE(
    "SIGINT is heard behind a shell's '&', which ignores it, and the command gets it ignored") {
  CHECK(status_of_child([] {
          ::signal(SIGINT, SIG_IGN);
          const auto signals = os::SignalSet::install();
          if (!signals) return 1;
          ::kill(::getpid(), SIGINT);
          const auto taken = signals->take();
          if (!taken || taken->number != SIGINT) return 2;
          if (!signals->is_ignored_by_children(SIGINT)) return 3;
          if (signals->is_ignored_by_children(SIGTERM)) return 4;
          os::restore_signals_for_exec();
          struct sigaction action = {};
          ::sigaction(SIGINT, nullptr, &action);
          return action.sa_handler == SIG_IGN ? 0 : 5;
        }) == 0);
}

TEST_CASE("A second signal kills once it is let through") {
  const int status = status_of_child([] {
    const auto signals = os::SignalSet::install();
    if (!signals) return 1;
    ::kill(::getpid(), SIGTERM);
    signals->take();
    signals->let_next_one_kill();
    ::kill(::getpid(), SIGTERM);
    return 2;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("A closed pipe is an error and not the end") {
  CHECK(status_of_child([] {
          const auto signals = os::SignalSet::install();
          int ends[2];
          if (!signals || ::pipe(ends) != 0) return 1;
          ::close(ends[0]);
          return ::write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2;
        }) == 0);
}

TEST_CASE("A command gets back the signals as they were before the first of them was ignored") {
  CHECK(status_of_child([] {
          for (const int signal : {SIGXFSZ, SIGPIPE}) ::signal(signal, SIG_DFL);
          os::make_size_limit_an_error();
          os::make_broken_pipe_an_error();
          if (!os::SignalSet::install()) return 1;
          os::restore_signals_for_exec();
          struct sigaction action = {};
          for (const int signal : {SIGXFSZ, SIGPIPE}) {
            ::sigaction(signal, nullptr, &action);
            if (action.sa_handler != SIG_DFL) return 2;
          }
          return 0;
        }) == 0);
}

TEST_CASE("A command gets back the signals as they were") {
  CHECK(status_of_child([] {
          sigset_t inherited;
          sigemptyset(&inherited);
          sigaddset(&inherited, SIGUSR1);
          ::sigprocmask(SIG_SETMASK, &inherited, nullptr);
          ::signal(SIGXFSZ, SIG_IGN);
          if (!os::SignalSet::install() || !os::SignalSet::install()) return 1;
          os::restore_signals_for_exec();
          struct sigaction action = {};
          ::sigaction(SIGPIPE, nullptr, &action);
          if (action.sa_handler != SIG_DFL) return 2;
          ::sigaction(SIGXFSZ, nullptr, &action);
          if (action.sa_handler != SIG_IGN) return 3;
          sigset_t mask;
          ::sigprocmask(SIG_BLOCK, nullptr, &mask);
          if (!sigismember(&mask, SIGUSR1)) return 4;
          return sigismember(&mask, SIGINT) || sigismember(&mask, SIGTERM) ? 5 : 0;
        }) == 0);
}

TEST_CASE("die_by_signal ends by that signal, blocked or ignored as it may be") {
  const int status = status_of_child([]() -> int {
    const auto signals = os::SignalSet::install();
    ::signal(SIGINT, SIG_IGN);
    os::die_by_signal(SIGINT);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("Writing to a standard output that was closed is an error") {
  CHECK(status_of_child([] {
          if (!os::is_writable(STDOUT_FILENO)) return 1;
          ::close(STDOUT_FILENO);
          if (os::is_writable(STDOUT_FILENO) || !os::ensure_standard_fds()) return 2;
          if (os::is_writable(STDOUT_FILENO)) return 3;
          return ::write(STDOUT_FILENO, "x", 1) == -1 && errno == EBADF ? 0 : 4;
        }) == 0);
}

TEST_CASE("Closed standard streams are opened as /dev/null") {
  CHECK(status_of_child([] {
          for (int fd = 0; fd <= 2; ++fd) ::close(fd);
          if (!os::ensure_standard_fds()) return 1;
          for (int fd = 0; fd <= 2; ++fd) {
            if (::fcntl(fd, F_GETFD) < 0) return 2;
          }
          return ::open("/dev/null", O_RDONLY) > 2 ? 0 : 3;
        }) == 0);
}

TEST_CASE("Standard streams that are open stay what they are") {
  CHECK(status_of_child([] {
          int ends[2];
          if (::pipe(ends) != 0 || ::dup2(ends[1], 1) != 1) return 1;
          ::close(2);
          if (!os::ensure_standard_fds() || ::write(1, "x", 1) != 1) return 2;
          char byte = 0;
          return ::read(ends[0], &byte, 1) == 1 && byte == 'x' ? 0 : 3;
        }) == 0);
}

TEST_CASE("A process is known by its user and by a descriptor while it lives") {
  CHECK(os::effective_uid_of(::getpid()) == ::geteuid());
  CHECK(os::open_pidfd(::getpid()));
  const pid_t gone = test::fork_child();
  if (gone == 0) ::_exit(0);
  REQUIRE(::waitpid(gone, nullptr, 0) == gone);
  CHECK_FALSE(os::effective_uid_of(gone));
  REQUIRE_FALSE(os::open_pidfd(gone));
  CHECK(os::open_pidfd(gone).error().code == ErrorCode::Gone);
}

TEST_CASE("A process is gone once its parent has taken notice of its end") {
  CHECK_FALSE(os::is_gone(::getpid()));
  const pid_t child = test::fork_child();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  CHECK_FALSE(os::is_gone(child));
  CHECK(os::has_ended(child));
  ::waitpid(child, nullptr, 0);
  CHECK(os::is_gone(child));
}

TEST_CASE("A process that SIGSTOP stopped is known to be") {
  const pid_t child = test::fork_child();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, WUNTRACED) == child);
  CHECK(os::is_stopped(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_FALSE(os::is_stopped(child));
  CHECK_FALSE(os::is_stopped(::getpid()));
}

TEST_CASE("Advice to run as root is not for root") {
  constexpr os::Capability kNobodys{63, "CAP_X"};
  CHECK(status_of_child([&] {
          const bool is_root = ::geteuid() == 0;
          if (os::how_to_get(kNobodys).starts_with("run as root") == is_root) return 1;
          if (is_root && ::setuid(65534) != 0) return 2;
          return os::how_to_get(kNobodys) == "run as root, or with CAP_X" ? 0 : 3;
        }) == 0);
}

TEST_CASE("Who has a capability is not told to get it") {
  const auto text = os::read_small_file("/proc/self/status");
  REQUIRE(text);
  const uint64_t own = os::parse_status(*text).value().effective_capabilities;
  for (unsigned number = 0; number < 41; ++number) {
    const bool has_it = ((own >> number) & 1) != 0;
    CHECK(os::how_to_get({number, "CAP_X"}).starts_with("CAP_X is there") == has_it);
  }
}

TEST_CASE("The limit of open files is raised up to the hard one") {
  CHECK(status_of_child([] {
          const rlimit limit{64, 256};
          if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
          if (os::raise_open_file_limit(100) != 256) return 2;
          rlimit now{};
          ::getrlimit(RLIMIT_NOFILE, &now);
          return now.rlim_cur == 256 && now.rlim_max == 256 ? 0 : 3;
        }) == 0);
}

TEST_CASE("The hard limit of open files is raised too where the kernel allows it") {
  const rlimit low{64, 256};
  const rlimit high{1000, 1000};
  const bool is_allowed = status_of_child([&] {  // CAP_SYS_RESOURCE
                            ::setrlimit(RLIMIT_NOFILE, &low);
                            return ::setrlimit(RLIMIT_NOFILE, &high) == 0 ? 0 : 1;
                          }) == 0;
  const uint64_t expected = is_allowed ? 1000 : 256;
  CHECK(status_of_child([&] {
          if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return 1;
          return os::raise_open_file_limit(1000) == expected ? 0 : 2;
        }) == 0);
}

TEST_CASE("Descriptors that are open are counted") {
  const uint64_t before = os::open_file_count();
  CHECK(before >= 3);
  const os::Fd one(::open("/", O_PATH | O_CLOEXEC));
  const os::Fd two(::open("/", O_PATH | O_CLOEXEC));
  CHECK(os::open_file_count() == before + 2);
  CHECK(status_of_child([] {
          const os::Fd next(::open("/", O_PATH | O_CLOEXEC));
          const auto full = static_cast<rlim_t>(next.get() + 1);
          const rlimit none_left{full, full};
          if (::setrlimit(RLIMIT_NOFILE, &none_left) != 0) return 1;
          return os::open_file_count() == full ? 0 : 2;
        }) == 0);
}

TEST_CASE("Clocks run forward and the process has used something") {
  const uint64_t begin = os::monotonic_ns();
  CHECK(os::monotonic_ns() >= begin);
  CHECK(os::unix_ns() > 1'600'000'000'000'000'000);
  CHECK(os::own_cpu_seconds() >= 0);
  CHECK(os::own_peak_rss_bytes() > 100 * 1024);
}

TEST_CASE("A kernel release is split behind its numbers") {
  const auto debian = os::split_kernel_release("6.1.0-18-amd64");
  CHECK(debian.version == "6.1.0");
  CHECK(debian.build == "18-amd64");
  CHECK(os::split_kernel_release("6.12.9").version == "6.12.9");
  CHECK(os::split_kernel_release("6.12.9").build.empty());
  CHECK(os::split_kernel_release("5.15.0+").version == "5.15.0");
  CHECK(os::split_kernel_release("6.9.rc1").version == "6.9");
  CHECK(os::split_kernel_release("6.9.rc1").build == "rc1");
  CHECK(os::split_kernel_release("").version.empty());
}

TEST_CASE("The system knows its name and machine") {
  const auto info = os::read_system_info();
  CHECK(info.name == "Linux");
  CHECK_FALSE(info.version.empty());
  CHECK_FALSE(info.architecture.empty());
}

TEST_CASE("who started us is above us, who did not is not") {
  CHECK(os::is_us_or_above_us(::getpid()));
  CHECK(os::is_us_or_above_us(::getppid()));
  const pid_t self = ::getpid();
  CHECK(status_of_child([&] { return os::is_us_or_above_us(self) ? 0 : 1; }) == 0);
  const pid_t child = test::fork_child();
  if (child == 0) ::pause();
  CHECK_FALSE(os::is_us_or_above_us(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_FALSE(os::is_us_or_above_us(child));
}

TEST_CASE("Children of any thread are listed, until they are waited for") {
  const auto is_listed = [](pid_t child) {
    const auto all = os::list_child_processes();
    return std::ranges::binary_search(all, os::ChildProcess{::getpid(), child});
  };
  constexpr int kThreads = 300;  // a server's; the youngest starts the child
  std::latch is_checked(1);
  std::vector<std::thread> threads;
  for (int i = 1; i < kThreads; ++i) threads.emplace_back([&] { is_checked.wait(); });
  std::promise<pid_t> started;
  threads.emplace_back([&] {
    const pid_t child = test::fork_child();
    if (child == 0) {
      for (;;) ::pause();
    }
    started.set_value(child);
    is_checked.wait();
  });
  const pid_t of_thread = started.get_future().get();
  const pid_t child = test::fork_child();
  if (child == 0) ::_exit(0);
  CHECK(is_listed(of_thread));
  CHECK(is_listed(child));
  is_checked.count_down();
  for (std::thread& thread : threads) thread.join();
  ::waitpid(child, nullptr, 0);
  CHECK_FALSE(is_listed(child));
  ::kill(of_thread, SIGKILL);
  ::waitpid(of_thread, nullptr, 0);
  CHECK_FALSE(is_listed(of_thread));
}

TEST_CASE("Parents are read behind whatever name a process has given itself") {
  const test::ScratchDirectory proc;
  const auto add = [&](const char* pid, const std::string& stat) {
    std::filesystem::create_directory(proc / pid);
    test::write_text(proc / (std::string(pid) + "/stat"), stat + " 1 1 0 -1 4194304 0 0 0 0");
  };
  add("30", "30 (worker) S 7");
  add("20", "20 () S 1 1 (x)) R 7");
  add("7", "7 (a b) S 1");
  add("8", "no stat");
  add("self", "9 (x) S 7");
  std::filesystem::create_directory(proc / "40");  // has ended
  const std::vector<os::ChildProcess> expected{{1, 7}, {7, 20}, {7, 30}};
  CHECK(os::list_child_processes(proc / "") == expected);
  CHECK(os::list_child_processes(proc / "none").empty());
}
