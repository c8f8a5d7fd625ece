// /proc of real processes. What needs privileges says so where it has none.
#include "target/proc.h"

#include "os/file.h"
#include "os/process.h"
#include "support/catch2.h"
#include "support/fork_child.h"
#include "support/skips.h"
#include "unit/os/scratch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

using namespace sentry_prof;
using namespace sentry_prof::target;

namespace {

// A thread that waits, with a name, until the object ends.
class WaitingThread {
 public:
  explicit WaitingThread(const char* name)
      : thread_([this, name] {
          ::prctl(PR_SET_NAME, name);
          tid_ = ::gettid();
          std::unique_lock lock(mutex_);
          is_ready_ = true;
          changed_.notify_all();
          changed_.wait(lock, [&] { return is_over_; });
        }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_ready_; });
  }
  ~WaitingThread() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  int tid() const { return tid_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ready_ = false, is_over_ = false;
  std::atomic<int> tid_ = 0;
  std::thread thread_;
};

// A child that runs `work` with the write end of a pipe, which tells that it is ready.
class Child {
 public:
  template <typename Work>
  explicit Child(Work&& work) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_ = test::fork_child();
    if (pid_ == 0) {
      ::close(ends[0]);
      work(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    char byte = 0;
    is_ready_ = ::read(ends[0], &byte, 1) == 1;
    ::close(ends[0]);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }
  bool is_ready() const { return is_ready_; }

 private:
  int pid_ = -1;
  bool is_ready_ = false;
};

void say_ready(int fd) {
  if (::write(fd, "r", 1) != 1) ::_exit(1);
}

void wait_until_zombie(int pid) {
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
}

}  // namespace

TEST_CASE("read_process sees this process, its threads and its executable") {
  const WaitingThread worker("worker-1");
  const auto snapshot = read_process(::getpid());
  REQUIRE(snapshot);
  CHECK(snapshot->pid == static_cast<uint32_t>(::getpid()));
  CHECK(snapshot->name == "unit_target_lin");  // comm has 15 characters
  CHECK(snapshot->taken_at_ns > 0);
  const auto& threads = snapshot->threads;
  CHECK(std::find(threads.begin(), threads.end(),
                  std::pair<uint32_t, std::string>(worker.tid(), "worker-1")) != threads.end());

  struct stat executable = {};
  REQUIRE(::stat("/proc/self/exe", &executable) == 0);
  const auto own_code = reinterpret_cast<uint64_t>(&say_ready);
  const auto mapping = std::find_if(
      snapshot->mappings.begin(), snapshot->mappings.end(), [&](const MappingFacts& m) {
        return m.begin.value <= own_code && own_code < m.begin.value + m.size_bytes;
      });
  REQUIRE(mapping != snapshot->mappings.end());
  CHECK(mapping->inode == executable.st_ino);
  CHECK(mapping->path == std::filesystem::read_symlink("/proc/self/exe").string());
}

TEST_CASE("list_threads is sorted and complete") {
  const WaitingThread one("one");
  const WaitingThread two("two");
  const auto threads = os::list_threads(::getpid());
  REQUIRE(threads);
  CHECK(std::is_sorted(threads->begin(), threads->end()));
  for (const int tid : {::getpid(), one.tid(), two.tid()}) {
    CHECK(std::binary_search(threads->begin(), threads->end(), tid));
  }
}

TEST_CASE("A process can be profiled by its owner") {
  const Child child([](int ready) {
    say_ready(ready);
    ::pause();
  });
  REQUIRE(child.is_ready());
  CHECK(check_is_profilable(child.pid(), {}));
}

TEST_CASE("A pid that nobody has is told") {
  const int pid = test::pid_that_is_gone();
  const auto check = check_is_profilable(pid, {});
  REQUIRE_FALSE(check);
  CHECK(check.error().code == ErrorCode::NotFound);
  CHECK(check.error().message ==
        fmt::format("there is no process {}. `ps` lists those that run.", pid));
  CHECK_FALSE(read_process(pid));
  CHECK(os::list_threads(pid).error().code == ErrorCode::Gone);
  CHECK(check_is_profilable(0, {}).error().code == ErrorCode::InvalidArgument);
  CHECK(check_is_profilable(-5, {}).error().code == ErrorCode::InvalidArgument);
  CHECK(check_is_profilable(::getpid(), {}).error().code == ErrorCode::InvalidArgument);
}

TEST_CASE("A thread's id is told with the process that it belongs to") {
  const WaitingThread worker("worker");
  const auto check = check_is_profilable(worker.tid(), {});
  REQUIRE_FALSE(check);
  CHECK(check.error().code == ErrorCode::InvalidArgument);
  CHECK(check.error().message ==
        fmt::format("{} is a thread of process {} (unit_target_lin). All threads of a process are "
                    "sampled: use -p {}",
                    worker.tid(), ::getpid(), ::getpid()));
}

TEST_CASE("A zombie is refused") {
  const Child child([](int ready) {
    ::prctl(PR_SET_NAME, "ended\x1b[1m");
    say_ready(ready);
  });
  wait_until_zombie(child.pid());
  const auto check = check_is_profilable(child.pid(), {});
  REQUIRE_FALSE(check);
  CHECK(check.error().code == ErrorCode::Gone);
  const auto snapshot = read_process(child.pid());
  REQUIRE_FALSE(snapshot);
  CHECK(snapshot.error().code == ErrorCode::Gone);
  CHECK(check.error().message ==
        fmt::format("process {} (ended?[1m) has already ended: it is a zombie that waits for its "
                    "parent ({}) to take notice.",
                    child.pid(), ::getpid()));
}

TEST_CASE("A process whose main thread has ended is read through the living ones") {
  const Child child([](int ready) {
    std::thread([ready] {
      // The main thread ends first; then its state in /proc is Z.
      const auto is_zombie = [] {
        const auto stat = os::read_small_file(fmt::format("/proc/{}/stat", ::getpid()));
        return stat && stat->find(") Z ") != std::string::npos;
      };
      while (!is_zombie()) ::usleep(1000);
      say_ready(ready);
      ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);  // this thread alone
  });
  REQUIRE(child.is_ready());
  CHECK(check_is_profilable(child.pid(), {}));
  const auto snapshot = read_process(child.pid());
  REQUIRE(snapshot);
  CHECK_FALSE(snapshot->mappings.empty());
  CHECK(snapshot->threads.size() == 2);
}

TEST_CASE("A kernel thread is refused") {
  const auto name = os::read_small_file("/proc/2/comm");
  if (!name || *name != "kthreadd\n") {
    testing::note_optional_skip("process 2 is not the kernel's, this is a PID namespace");
    return;
  }
  const auto check = check_is_profilable(2, {});
  REQUIRE_FALSE(check);
  CHECK(check.error().code == ErrorCode::Unsupported);
  CHECK(check.error().message ==
        "process 2 (kthreadd) is a thread of the kernel: it has no user stack to record.");
}

TEST_CASE("Another user's process is refused with advice") {
  if (::geteuid() != 0) {
    testing::note_skip("needs root to become another user");
    return;
  }
  const int root_pid = ::getpid();
  const int status = test::status_of_child([&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
    const auto check = check_is_profilable(root_pid, std::array{root_pid, 7});
    if (check || check.error().code != ErrorCode::PermissionDenied) return 2;
    return check.error().message ==
                   fmt::format(
                       "process {} (unit_target_lin) runs as another user (root). Run "
                       "sentry-prof as root: sudo sentry-prof record -p {},7",
                       root_pid, root_pid)
               ? 0
               : 3;
  });
  CHECK(status == 0);
}

namespace {

constexpr uid_t kOwner = 65534, kFirstSubordinate = 100'000;

bool write_at_once(const std::string& path, const std::string& text) {
  const os::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// In a user namespace that kOwner made, as a user that only exists there. `is_made` and `is_mapped`
// are pipes.
[[noreturn]] void run_in_container(const std::array<int, 2>& is_made,
                                   const std::array<int, 2>& is_mapped) {
  char byte = 0;
  const bool is_inside =
      ::setresgid(kOwner, kOwner, kOwner) == 0 && ::setresuid(kOwner, kOwner, kOwner) == 0 &&
      ::prctl(PR_SET_DUMPABLE, 1) == 0 && ::unshare(CLONE_NEWUSER) == 0 &&
      ::write(is_made[1], &byte, 1) == 1 && ::read(is_mapped[0], &byte, 1) == 1 &&
      ::setresgid(1, 1, 1) == 0 && ::setresuid(1, 1, 1) == 0;
  if (is_inside) ::execlp("sleep", "sleep", "1000", nullptr);
  ::_exit(1);
}

}  // namespace

TEST_CASE("A process of another user in one's own container may be looked at") {
  if (::geteuid() != 0) {
    testing::note_skip("needs root to become another user");
    return;
  }
  std::array<int, 2> is_made{}, is_mapped{};
  REQUIRE(::pipe2(is_made.data(), O_CLOEXEC) == 0);
  REQUIRE(::pipe2(is_mapped.data(), O_CLOEXEC) == 0);
  const pid_t pid = test::fork_child();
  if (pid == 0) run_in_container(is_made, is_mapped);
  ::close(is_made[1]);
  char byte = 0;
  const std::string directory = fmt::format("/proc/{}", pid);
  const std::string ids = fmt::format("0 {} 1\n1 {} 10\n", kOwner, kFirstSubordinate);
  const bool may_make = ::read(is_made[0], &byte, 1) == 1;
  if (may_make) {
    REQUIRE(write_at_once(directory + "/uid_map", ids));
    REQUIRE(write_at_once(directory + "/gid_map", ids));
    REQUIRE(::write(is_mapped[1], &byte, 1) == 1);
    for (int i = 0; i < 500 && os::read_small_file(directory + "/comm").value_or("") != "sleep\n";
         ++i) {
      ::usleep(10'000);
    }
    const int status = test::status_of_child([&] {
      if (::setgid(kOwner) != 0 || ::setuid(kOwner) != 0) return 1;
      return check_is_profilable(pid, {}) ? 0 : 2;
    });
    CHECK(status == 0);
    const int of_another = test::status_of_child([&] {
      if (::setgid(kOwner - 1) != 0 || ::setuid(kOwner - 1) != 0) return 1;
      return check_is_profilable(pid, {}) ? 2 : 0;
    });
    CHECK(of_another == 0);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  for (const int fd : {is_made[0], is_mapped[0], is_mapped[1]}) ::close(fd);
  if (!may_make) testing::note_optional_skip("no user namespaces here");
}

TEST_CASE("The paths of a process in a chroot are those that it sees") {
  if (::geteuid() != 0) {
    testing::note_skip("needs root for chroot");
    return;
  }
  const test::ScratchDirectory scratch;
  std::filesystem::copy_file("/proc/self/exe", scratch / "library");
  std::array<int, 2> is_mapped{};
  REQUIRE(::pipe2(is_mapped.data(), O_CLOEXEC) == 0);
  const pid_t pid = test::fork_child();
  if (pid == 0) {
    const bool is_inside = ::chroot(scratch.path().c_str()) == 0 && ::chdir("/") == 0;
    const os::Fd file(is_inside ? ::open("/library", O_RDONLY | O_CLOEXEC) : -1);
    const void* const code =
        ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
    if (code == MAP_FAILED || ::write(is_mapped[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  ::close(is_mapped[1]);
  char byte = 0;
  CHECK(::read(is_mapped[0], &byte, 1) == 1);
  ::close(is_mapped[0]);
  const auto snapshot = read_process(pid);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  REQUIRE(snapshot);
  CHECK(std::ranges::count(snapshot->mappings, "/library", &MappingFacts::path) == 1);
}

TEST_CASE("check_proc refuses the /proc of another pid namespace, and none") {
  CHECK(check_proc());
  if (::geteuid() != 0) {
    testing::note_skip("needs root for namespaces");
    return;
  }
  CHECK(test::status_of_child([] {
          if (::unshare(CLONE_NEWPID) != 0) return 10;
          return test::status_of_child([] {
            const auto other = check_proc();
            return !other &&
                           other.error().message.find("another pid namespace") != std::string::npos
                       ? 0
                       : 1;
          });
        }) == 0);
  CHECK(test::status_of_child([] {
          const test::ScratchDirectory empty;
          if (::chroot(empty.path().c_str()) != 0) return 10;
          const auto none = check_proc();
          return !none && none.error().message.find("not mounted") != std::string::npos ? 0 : 1;
        }) == 0);
}
