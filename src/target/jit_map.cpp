#include "target/jit_map.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc_text.h"
#include "target/image_files.h"
#include "target/process_files.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::target {

namespace {

// A file's time is that of the last timer tick, a process's start a hundredth of a second, and the
// wall clock may have been set a little since.
constexpr uint64_t kClockError_ns = kNsPerSecond;

constexpr uint64_t kNotYet_ns = UINT64_MAX - kClockError_ns;

struct Program {
  uint32_t pid_inside = 0;  // in the process's own pid namespace
  uint32_t user_id = 0;     // with which it makes files
  uint64_t begin_unix_ns = 0;
  std::string_view begin_is_of = "the program that runs";
  uint64_t end_unix_ns = kNotYet_ns;  // of what was recorded of it
};

Result<Program> read_program(uint32_t pid, uint64_t begin_ns) {
  const auto stat_text = os::read_small_file(fmt::format("/proc/{}/stat", pid));
  const auto status_text = os::read_small_file(fmt::format("/proc/{}/status", pid));
  const auto stat = stat_text ? os::parse_stat(*stat_text) : std::nullopt;
  const auto status = status_text ? os::parse_status(*status_text) : std::nullopt;
  if (!stat || !status) return fail(ErrorCode::NotFound, "the process has ended");
  const auto ticks_per_second = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  const uint64_t start_ns = stat->start_ticks * (kNsPerSecond / ticks_per_second);
  const uint64_t begin_unix_ns = begin_ns != 0 ? os::unix_ns() - os::monotonic_ns() + begin_ns
                                               : os::unix_ns() - os::boottime_ns() + start_ns;
  // Without CONFIG_PID_NS there is no NSpid.
  return Program{.pid_inside = status->innermost_pid != 0 ? status->innermost_pid : pid,
                 .user_id = status->user_ids[3],
                 .begin_unix_ns = begin_unix_ns};
}

// Anyone can put a file into /tmp under that name, before or after the process does; and a hard
// link to a file of root's, which would be read for whoever made it. Empty: nothing speaks against
// it.
std::string why_not_believed(const struct statx& file, const Program& program) {
  const bool is_its_own = file.stx_uid == program.user_id;
  const bool has_birth = (file.stx_mask & STATX_BTIME) != 0;
  if (!S_ISREG(file.stx_mode)) return "it is no regular file";
  if (!is_its_own && file.stx_uid != 0) return "it belongs to another user";
  if (!is_its_own && file.stx_nlink != 1) return "it is root's and has another name, too";
  if (to_unix_ns(file.stx_mtime) + kClockError_ns < program.begin_unix_ns) {
    return fmt::format("it is older than {}", program.begin_is_of);
  }
  if (has_birth && to_unix_ns(file.stx_btime) > program.end_unix_ns + kClockError_ns) {
    return "it was made after the recording";
  }
  return "";
}

tl::unexpected<Error> refusal(const std::string& path, uint32_t pid, std::string_view why) {
  return fail(ErrorCode::PermissionDenied,
              fmt::format("{} of process {} is not used: {}", path, pid, why));
}

std::string path_of(uint32_t pid) { return fmt::format("/tmp/perf-{}.map", pid); }

Result<os::Fd> open_if_believed(const os::Fd& found, const std::string& path, uint32_t pid,
                                const Program& program) {
  struct statx status {};
  constexpr unsigned kWanted = STATX_BASIC_STATS | STATX_BTIME;
  if (::statx(found.get(), "", AT_EMPTY_PATH, kWanted, &status) != 0) {
    return fail(ErrorCode::NotFound, path);
  }
  if (const auto why = why_not_believed(status, program); !why.empty()) {
    return refusal(path, pid, why);
  }
  auto opened = reopen_regular_file(found);
  if (!opened) return refusal(path, pid, opened.error().message);
  return opened;
}

// That the process is there still, and no other one with its pid, is told by its start.
Program program_of(const RecordedProcess& process) {
  Program program{.pid_inside = process.pid,
                  .user_id = ::geteuid(),
                  .begin_unix_ns = process.program_begin_unix_ns,
                  .begin_is_of = "the program that ran",
                  .end_unix_ns = std::min(process.recording_end_unix_ns, kNotYet_ns)};
  if (program.begin_unix_ns != 0) return program;
  const auto living = read_program(process.pid, 0);
  const bool is_it = living && living->begin_unix_ns <= process.recording_begin_unix_ns;
  program.begin_unix_ns = is_it ? living->begin_unix_ns : process.recording_begin_unix_ns;
  if (!is_it) program.begin_is_of = "the recording";
  return program;
}

}  // namespace

JitMap jit_map_of(os::Fd file) {
  const auto shared = std::make_shared<const os::Fd>(std::move(file));
  return [shared]() -> std::shared_ptr<const ByteSource> {
    auto bytes = os::FileByteSource::adopt(os::Fd(::fcntl(shared->get(), F_DUPFD_CLOEXEC, 0)));
    return bytes ? *bytes : nullptr;
  };
}

Result<os::Fd> open_jit_map(uint32_t pid, uint64_t program_begin_ns) {
  const auto program = read_program(pid, program_begin_ns);
  if (!program) return tl::unexpected(program.error());
  const std::string path = path_of(program->pid_inside);
  const os::Fd root = open_root_of(pid);
  const AsUserOf user(pid);
  if (user.is_refused()) {
    return fail(ErrorCode::PermissionDenied,
                fmt::format("{} of process {} is not looked for: root may not become that "
                            "process's user here (CAP_SETUID, CAP_SETGID)",
                            path, pid));
  }
  if (!root.is_open() || !user.is_known()) return fail(ErrorCode::NotFound, path);
  const os::Fd directory = find_below(root.get(), "/tmp");
  const os::Fd found =
      directory.is_open()
          ? find_below(directory.get(), path.substr(path.rfind('/') + 1), RESOLVE_NO_SYMLINKS)
          : os::Fd();
  if (!found.is_open()) {
    return errno == ELOOP ? refusal(path, pid, "it is a link") : fail(ErrorCode::NotFound, path);
  }
  return open_if_believed(found, path, pid, *program);
}

Result<os::Fd> open_recorded_jit_map(const RecordedProcess& process) {
  const std::string path = path_of(process.pid);
  const os::Fd found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.is_open()) return fail(ErrorCode::NotFound, path);
  return open_if_believed(found, path, process.pid, program_of(process));
}

}  // namespace sentry_prof::target
