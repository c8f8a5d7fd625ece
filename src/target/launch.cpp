#include "target/launch.h"

#include "base/time_units.h"
#include "os/errors.h"
#include "os/process.h"
#include "os/signals.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::target {

namespace {

constexpr char kGo = 'g';

struct Pair {
  os::Fd ours;
  os::Fd childs;
};

// A socket and not a pipe: send() can be told not to raise SIGPIPE.
Result<Pair> make_pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return os::fail_with_errno(errno, "socketpair");
  }
  return Pair{os::Fd(fds[0]), os::Fd(fds[1])};
}

// The number of bytes read; less than asked for at the end of the stream.
size_t read_fully(int fd, void* bytes, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(fd, static_cast<char*>(bytes) + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

// In the child, where only async-signal-safe calls are made. The profiler's death before the word
// to go closes the socket: the command must not run unobserved then.
[[noreturn]] void run_child(int go, int exec_error, char* const* arguments) {
  os::restore_signals_for_exec();
  char word = 0;
  if (read_fully(go, &word, 1) != 1) ::_exit(125);
  ::execvp(arguments[0], arguments);
  const int error_number = errno;
  ::send(exec_error, &error_number, sizeof(error_number), MSG_NOSIGNAL);
  ::_exit(125);
}

int wait_for(int pid, int& status) {
  int result = 0;
  do {
    result = ::waitpid(pid, &status, 0);
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

Result<LaunchedChild> LaunchedChild::start(const std::vector<std::string>& command) {
  if (command.empty()) return fail(ErrorCode::InvalidArgument, "no command to launch");
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  auto go = make_pair();
  if (!go) return tl::unexpected(go.error());
  auto exec_error = make_pair();
  if (!exec_error) return tl::unexpected(exec_error.error());

  const int pid = ::fork();
  if (pid < 0) return os::fail_with_errno(errno, "fork");
  if (pid == 0) {
    go->ours.reset();
    exec_error->ours.reset();
    run_child(go->childs.get(), exec_error->childs.get(), arguments.data());
  }
  LaunchedChild child;
  child.pid_ = pid;
  child.go_ = std::move(go->ours);
  child.exec_error_ = std::move(exec_error->ours);
  auto pidfd = os::open_pidfd(pid);
  if (!pidfd) return tl::unexpected(pidfd.error());
  child.pidfd_ = std::move(*pidfd);
  return child;
}

LaunchedChild::LaunchedChild(LaunchedChild&& other) noexcept { swap(other); }

LaunchedChild& LaunchedChild::operator=(LaunchedChild&& other) noexcept {
  LaunchedChild taken(std::move(other));
  swap(taken);
  return *this;
}

void LaunchedChild::swap(LaunchedChild& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(go_, other.go_);
  std::swap(exec_error_, other.exec_error_);
  std::swap(was_released_, other.was_released_);
  std::swap(was_reaped_, other.was_reaped_);
}

LaunchedChild::~LaunchedChild() {
  if (pid_ < 0 || was_released_ || was_reaped_) return;
  // Not yet reaped, so that the pid is still this child's.
  ::kill(pid_, SIGKILL);
  int status = 0;
  wait_for(pid_, status);
}

Result<int> LaunchedChild::release() {
  if (was_released_) return fail(ErrorCode::InvalidArgument, "the command was started before");
  if (::send(go_.get(), &kGo, sizeof(kGo), MSG_NOSIGNAL) != sizeof(kGo)) {
    return fail(ErrorCode::Gone, "the command was ended before it could start");
  }
  was_released_ = true;
  int error_number = 0;
  const size_t size = read_fully(exec_error_.get(), &error_number, sizeof(error_number));
  return size == sizeof(error_number) ? error_number : 0;
}

uint64_t LaunchedChild::cpu_time_ns() const {
  siginfo_t ended{};
  rusage used{};
  // waitid(2) of the C library has no place for the rusage.
  const long result =
      ::syscall(SYS_waitid, P_PID, pid_, &ended, WEXITED | WNOHANG | WNOWAIT, &used);
  if (result != 0 || ended.si_pid != pid_) return 0;
  const auto to_ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond +
           static_cast<uint64_t>(time.tv_usec) * 1000;
  };
  return to_ns(used.ru_utime) + to_ns(used.ru_stime);
}

Result<int> LaunchedChild::wait() {
  if (was_reaped_) return fail(ErrorCode::InvalidArgument, "the command's end was taken before");
  int status = 0;
  if (wait_for(pid_, status) < 0) return os::fail_with_errno(errno, "waitpid");
  was_reaped_ = true;
  return status;
}

}  // namespace sentry_prof::target
