#include "target/proc.h"

#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/privileges.h"
#include "os/proc_text.h"
#include "os/process.h"
#include "target/process_files.h"

#include <algorithm>
#include <climits>
#include <string>

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

namespace sentry_prof::target {

namespace {

std::string proc_path(int pid, std::string_view file) {
  return fmt::format("/proc/{}/{}", pid, file);
}

// A comm as a word of a sentence: control characters would act on the terminal.
std::string printable(std::string_view name) {
  std::string result;
  for (const char c : name) result += c >= ' ' && c <= '~' ? c : '?';
  return result;
}

std::string read_name(const std::string& path) {
  auto name = os::read_small_file(path, 4096);
  if (!name) return {};
  if (name->ends_with('\n')) name->pop_back();
  return std::move(*name);
}

std::string described(int pid) {
  return fmt::format("process {} ({})", pid, printable(read_name(proc_path(pid, "comm"))));
}

Error no_such_process(int pid) {
  return {ErrorCode::NotFound,
          fmt::format("there is no process {}. `ps` lists those that run.", pid)};
}

template <typename Facts>
Result<Facts> read_facts(int pid, std::string_view file,
                         std::optional<Facts> (*parse)(std::string_view)) {
  const auto text = os::read_small_file(proc_path(pid, file));
  if (!text) {
    const bool is_gone =
        text.error().code == ErrorCode::NotFound || text.error().code == ErrorCode::Gone;
    return tl::unexpected(is_gone ? no_such_process(pid) : text.error());
  }
  if (auto facts = parse(*text)) return *facts;
  return fail(ErrorCode::Malformed, proc_path(pid, file) + ": not in the expected form");
}

bool may_look_at_others() {
  return os::has_capability(os::kCapSysPtrace) || os::has_capability(os::kCapSysAdmin) ||
         os::has_capability(os::kCapPerfmon);
}

std::string user_name(uint32_t uid) {
  char buffer[1024];
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) != 0 || found == nullptr) {
    return fmt::format("uid {}", uid);
  }
  return printable(found->pw_name);
}

// A user has all rights over the containers that are his (user_namespaces(7)), whoever runs in
// them. It takes the same right as to read its maps (proc_pid_exe(5)).
bool lets_us_look_at(int pid) {
  char first = 0;
  const std::string link = directory_of(static_cast<uint32_t>(pid)) + "/exe";
  return ::readlink(link.c_str(), &first, sizeof(first)) > 0;
}

Result<void> check_owner(int pid, const os::ProcStatus& status, std::span<const int> pids) {
  const auto& ids = status.user_ids;
  const uint32_t self = ::getuid();
  // The kernel wants all three to be ours (ptrace_may_access); a setuid program has others.
  const bool is_ours =
      std::all_of(ids.begin(), ids.begin() + 3, [&](uint32_t id) { return id == self; });
  if (is_ours || may_look_at_others() || lets_us_look_at(pid)) return {};
  const uint32_t other = ids[0] != self ? ids[0] : ids[1] != self ? ids[1] : ids[2];
  return fail(ErrorCode::PermissionDenied,
              fmt::format("{} runs as another user ({}). {}", described(pid), user_name(other),
                          self == 0 ? "To look at it, " + os::how_to_get(os::kCapSysPtrace)
                                    : fmt::format("Run sentry-prof as root: sudo sentry-prof "
                                                  "record -p {}",
                                                  fmt::join(pids, ","))));
}

Result<void> check_lives(int pid, const os::ProcStat& stat) {
  if (stat.state != 'Z' && stat.state != 'X') return {};
  if (os::living_thread_of(pid) != pid) return {};
  return fail(ErrorCode::Gone,
              fmt::format("{} has already ended: it is a zombie that waits for its parent ({}) to "
                          "take notice.",
                          described(pid), stat.parent_pid));
}

}  // namespace

Result<void> check_proc() {
  char self[16] = {};  // a pid_t has ten digits
  if (::readlink("/proc/self", self, sizeof(self) - 1) <= 0) {
    return fail(ErrorCode::Unsupported,
                "nothing is known of any process: /proc is not mounted. Mount it (mount -t proc "
                "proc /proc)");
  }
  if (self == std::to_string(::getpid())) return {};
  return fail(ErrorCode::Unsupported,
              "/proc numbers processes otherwise than the kernel does here: it is that of another "
              "pid namespace. Mount this one's (mount -t proc proc /proc, unshare --mount-proc)");
}

bool is_of_ended_process(const Error& error) {
  return error.code == ErrorCode::Gone || error.code == ErrorCode::NotFound;
}

std::optional<int> process_of_thread(int tid) {
  const auto status = read_facts(tid, "status", os::parse_status);
  return status ? std::optional(static_cast<int>(status->thread_group)) : std::nullopt;
}

Result<void> check_is_profilable(int pid, std::span<const int> pids) {
  if (pid <= 0) return fail(ErrorCode::InvalidArgument, fmt::format("{} is no process id", pid));
  if (pid == ::getpid()) {
    return fail(ErrorCode::InvalidArgument, fmt::format("process {} is sentry-prof itself", pid));
  }
  const auto stat = read_facts(pid, "stat", os::parse_stat);
  if (!stat) return tl::unexpected(stat.error());
  const auto status = read_facts(pid, "status", os::parse_status);
  if (!status) return tl::unexpected(status.error());
  if (status->thread_group != static_cast<uint32_t>(pid)) {
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("{} is a thread of {}. All threads of a process are sampled: use -p {}", pid,
                    described(static_cast<int>(status->thread_group)), status->thread_group));
  }
  if (stat->is_kernel_thread) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{} is a thread of the kernel: it has no user stack to record.",
                            described(pid)));
  }
  if (auto lives = check_lives(pid, *stat); !lives) return lives;
  return check_owner(pid, *status, pids);
}

namespace {

// Those that end meanwhile are left out. Opened relative to the directory and read with one call
// each, since a process may have thousands.
std::vector<std::pair<uint32_t, std::string>> read_names(int pid, const std::vector<int>& threads) {
  std::vector<std::pair<uint32_t, std::string>> names;
  names.reserve(threads.size());
  const os::Fd tasks(::open(proc_path(pid, "task").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const int tid : threads) {
    const os::Fd comm(
        ::openat(tasks.get(), fmt::format("{}/comm", tid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!comm.is_open()) continue;
    char name[64];  // TASK_COMM_LEN is 16, of kernel threads up to 64
    const ssize_t size = ::read(comm.get(), name, sizeof(name));
    if (size <= 0) continue;
    const size_t length = static_cast<size_t>(size) - (name[size - 1] == '\n' ? 1 : 0);
    names.emplace_back(tid, std::string(name, length));
  }
  return names;
}

}  // namespace

namespace {

// What stands in /proc/PID/maps before the paths of a process in a chroot: they are shown from our
// root on, those of map records from the process's. "" if nothing does.
std::string directory_before_paths(uint32_t pid) {
  char root[PATH_MAX];
  const ssize_t size = ::readlink((directory_of(pid) + "/root").c_str(), root, sizeof(root));
  return size > 1 ? std::string(root, static_cast<size_t>(size)) : std::string();
}

void take_off(std::string_view directory, std::string& path) {
  const bool is_below = !directory.empty() && path.starts_with(directory) &&
                        path.size() > directory.size() && path[directory.size()] == '/';
  if (is_below) path.erase(0, directory.size());
}

void take_off(std::string_view directory, std::vector<MappingFacts>& mappings) {
  for (MappingFacts& mapping : mappings) take_off(directory, mapping.path);
}

}  // namespace

Result<ProcessSnapshot> read_process(int pid) {
  ProcessSnapshot snapshot;
  snapshot.taken_at_ns = os::monotonic_ns();
  snapshot.pid = static_cast<uint32_t>(pid);
  const auto threads = os::list_threads(pid);
  if (!threads) return tl::unexpected(threads.error());
  const auto maps = os::read_small_file(directory_of(snapshot.pid) + "/maps");
  if (!maps) return tl::unexpected(maps.error());
  // A zombie's is there, and empty: it would wipe what is known of a process whose last samples are
  // still to be walked.
  if (maps->empty()) {
    return fail(ErrorCode::Gone, fmt::format("process {} has ended: it has no mappings", pid));
  }
  snapshot.mappings = parse_maps(*maps, snapshot.pid);
  snapshot.data_below_code = parse_data_below_code(*maps, snapshot.pid);
  const std::string directory = directory_before_paths(snapshot.pid);
  take_off(directory, snapshot.mappings);
  take_off(directory, snapshot.data_below_code);
  snapshot.name = read_name(proc_path(pid, "comm"));
  snapshot.threads = read_names(pid, *threads);
  return snapshot;
}

Result<std::vector<MappingFacts>> read_mappings(int pid) {
  const auto number = static_cast<uint32_t>(pid);
  const auto maps = os::read_small_file(directory_of(number) + "/maps");
  if (!maps) return tl::unexpected(maps.error());
  auto mappings = parse_maps(*maps, number);
  take_off(directory_before_paths(number), mappings);
  return mappings;
}

std::string executable_of(uint32_t pid) {
  char link[PATH_MAX];
  const ssize_t size = ::readlink((directory_of(pid) + "/exe").c_str(), link, sizeof(link));
  std::string path(link, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  take_off(directory_before_paths(pid), path);
  return path;
}

}  // namespace sentry_prof::target
