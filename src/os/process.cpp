#include "os/process.h"

#include "os/directory.h"
#include "os/errors.h"
#include "os/file.h"
#include "os/proc_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

tl::unexpected<Error> process_error(int error_number, pid_t pid, std::string_view what) {
  if (error_number == ENOENT || error_number == ESRCH) {
    return fail(ErrorCode::Gone, fmt::format("process {} has ended", pid));
  }
  return fail_with_errno(error_number, fmt::format("process {}: {}", pid, what));
}

std::optional<pid_t> parse_tid(std::string_view name) {
  pid_t tid = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, tid);
  return error == std::errc() && stop == end ? std::optional(tid) : std::nullopt;
}

}  // namespace

Result<std::vector<pid_t>> list_threads(pid_t pid) {
  const Fd tasks(
      ::open(fmt::format("/proc/{}/task", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!tasks.is_open()) return process_error(errno, pid, "list of threads");
  std::vector<pid_t> threads;
  const int error_number = for_each_name(tasks.get(), [&](const char* name) {
    if (const auto tid = parse_tid(name)) threads.push_back(*tid);
  });
  if (error_number != 0) return process_error(error_number, pid, "list of threads");
  std::sort(threads.begin(), threads.end());
  return threads;
}

std::vector<int> list_allowed_cpus(pid_t tid) {
  std::array<uint64_t, 128> words{};  // 8,192 CPUs: CONFIG_NR_CPUS of x86-64 at its largest
  std::vector<int> cpus;
  // Not libc's function, whose set ends at 1,024.
  if (::syscall(SYS_sched_getaffinity, tid, sizeof words, words.data()) < 0) return cpus;
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint64_t left = words[i]; left != 0; left &= left - 1) {
      cpus.push_back(static_cast<int>(64 * i) + std::countr_zero(left));
    }
  }
  return cpus;
}

std::vector<ChildProcess> list_child_processes(const std::string& proc) {
  constexpr size_t kMaxProcesses = 100'000;  // a second's reading; hosts have some thousands
  std::vector<ChildProcess> processes;
  const Fd directory(::open(proc.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return processes;
  for_each_name(directory.get(), [&](const char* name) {
    const auto pid = parse_tid(name);
    if (!pid || processes.size() >= kMaxProcesses) return;
    const auto text = read_small_file(fmt::format("{}/{}/stat", proc, *pid));
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (stat) processes.push_back({static_cast<pid_t>(stat->parent_pid), *pid});
  });
  std::sort(processes.begin(), processes.end());
  return processes;
}

bool is_us_or_above_us(pid_t pid) {
  constexpr int kMaxDepth = 100;
  pid_t at = ::getpid();
  for (int i = 0; i < kMaxDepth && at != pid && at > 0; ++i) {
    const auto text = read_small_file(fmt::format("/proc/{}/stat", at));
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    at = stat ? static_cast<pid_t>(stat->parent_pid) : 0;
  }
  return at == pid;
}

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

bool has_ended(pid_t tid) {
  const auto text = read_small_file(fmt::format("/proc/{}/stat", tid));
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  return !stat || stat->state == 'Z' || stat->state == 'X';
}

pid_t living_thread_of(pid_t pid) {
  if (!has_ended(pid)) return pid;
  const auto threads = list_threads(pid);
  if (!threads) return pid;
  const auto living = std::ranges::find_if_not(*threads, has_ended);
  return living == threads->end() ? pid : *living;
}

bool is_init() { return ::getpid() == 1; }

void reap_orphans(pid_t own) {
  for (;;) {
    siginfo_t ended{};
    const int result = ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT);
    if (result != 0 || ended.si_pid == 0 || ended.si_pid == own) return;
    if (::waitpid(ended.si_pid, nullptr, WNOHANG) != ended.si_pid) return;
  }
}

Result<Fd> open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (fd.is_open()) return fd;
#else
  errno = ENOSYS;
#endif
  return process_error(errno, pid, "pidfd_open (needs Linux 5.3)");
}

bool is_stopped(pid_t pid) {
  const auto text = read_small_file(fmt::format("/proc/{}/stat", pid));
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  return stat && (stat->state == 'T' || stat->state == 't');
}

std::optional<uint32_t> effective_uid_of(pid_t pid) {
  const auto text = read_small_file(fmt::format("/proc/{}/status", pid));
  const auto status = text ? parse_status(*text) : std::nullopt;
  return status ? std::optional(status->user_ids[1]) : std::nullopt;
}

}  // namespace sentry_prof::os
