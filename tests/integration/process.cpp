#include "process.h"

#include "support/fork_child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::testing {

namespace {

int make_memory_file(const char* name) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) throw std::runtime_error("memfd_create failed");
  return fd;
}

std::string text_in(int fd) {
  std::string text;
  char buffer[65536];
  ssize_t count = 0;
  while ((count = ::pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

// Catch2's signal handlers are not for the child: a signal that comes before its exec shall end it.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &previous_);
  }
  ~SignalsHeldBack() { ::sigprocmask(SIG_SETMASK, &previous_, nullptr); }

  // In the child.
  void let_through_by_default() const {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &previous_, nullptr);
  }

 private:
  sigset_t previous_{};
};

[[noreturn]] void become(const Command& command, char** arguments, char** environment,
                         int output_fd, int error_fd) {
  ::setpgid(0, 0);
  const int null_fd = ::open("/dev/null", O_RDONLY);
  if (null_fd < 0 || ::dup2(null_fd, 0) < 0 || ::dup2(output_fd, 1) < 0 ||
      ::dup2(error_fd, 2) < 0) {
    ::_exit(124);
  }
  if (null_fd > 2) ::close(null_fd);
  if (!command.directory.empty() && ::chdir(command.directory.c_str()) != 0) ::_exit(124);
  ::execvpe(arguments[0], arguments, environment);
  ::_exit(127);
}

// In ticks; -1 if there is no such process.
long cpu_time_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');
  if (name_end == text.npos) return -1;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  constexpr int kFirstField = 3, kUserTime = 14;  // proc_pid_stat(5)
  for (int number = kFirstField; number < kUserTime; ++number) fields >> skipped;
  long user = 0, system = 0;
  fields >> user >> system;
  return fields ? user + system : -1;
}

}  // namespace

int CommandResult::status() const {
  return WIFSIGNALED(wait_status) ? -WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

BackgroundProcess::BackgroundProcess(const Command& command)
    : output_fd_(make_memory_file("stdout")), error_fd_(make_memory_file("stderr")) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = merged_environment(command.environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const SignalsHeldBack signals;
  std::array<int, 2> until_exec{};
  if (::pipe2(until_exec.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  pid_ = test::fork_child();
  if (pid_ == 0) {
    signals.let_through_by_default();
    become(command, const_cast<char**>(argument_pointers.data()),
           const_cast<char**>(environment_pointers.data()), output_fd_, error_fd_);
  }
  ::setpgid(pid_, pid_);  // in both, so that the group exists whoever comes first
  ::close(until_exec[1]);
  char none = 0;
  while (::read(until_exec[0], &none, 1) < 0 && errno == EINTR) continue;  // ends with the exec
  ::close(until_exec[0]);
}

BackgroundProcess::~BackgroundProcess() {
  if (!poll_end()) {
    kill_group();
    ::waitpid(pid_, &wait_status_, 0);
  }
  ::close(output_fd_);
  ::close(error_fd_);
}

void BackgroundProcess::kill_group() const { ::kill(-pid_, SIGKILL); }

void BackgroundProcess::send_signal(int signal) const { ::kill(pid_, signal); }

bool BackgroundProcess::poll_end() {
  if (!has_ended_ && ::waitpid(pid_, &wait_status_, WNOHANG) == pid_) has_ended_ = true;
  return has_ended_;
}

bool BackgroundProcess::is_running() { return !poll_end(); }

std::string BackgroundProcess::standard_output() const { return text_in(output_fd_); }
std::string BackgroundProcess::standard_error() const { return text_in(error_fd_); }

bool BackgroundProcess::wait_for_output(std::string_view text, double time_out_s) {
  const auto is_there = [&] {
    return standard_output().find(text) != std::string::npos ||
           standard_error().find(text) != std::string::npos;
  };
  wait_until([&] { return is_there() || poll_end(); }, time_out_s);
  return is_there();
}

CommandResult BackgroundProcess::wait(double time_out_s) {
  CommandResult result;
  result.timed_out = !wait_until([&] { return poll_end(); }, time_out_s);
  if (result.timed_out) {
    kill_group();
    ::waitpid(pid_, &wait_status_, 0);
    has_ended_ = true;
  }
  result.wait_status = wait_status_;
  result.standard_output = standard_output();
  result.standard_error = standard_error();
  return result;
}

bool wait_until_used(pid_t pid, double cpu_s) {
  const long begin = cpu_time_of(pid);
  const auto wanted = static_cast<long>(cpu_s * static_cast<double>(::sysconf(_SC_CLK_TCK)));
  long now = begin;
  wait_until([&] { return (now = cpu_time_of(pid)) < 0 || now - begin >= wanted; }, 60);
  return begin >= 0 && now - begin >= wanted;
}

CommandResult run_command(const Command& command) {
  return BackgroundProcess(command).wait(command.time_out_s);
}

}  // namespace sentry_prof::testing
