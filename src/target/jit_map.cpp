#include "target/jit_map.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc_text.h"
#include "target/image_files.h"
#include "target/process_files.h"

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

struct Program {
  uint32_t pid_inside = 0;  // in the process's own pid namespace
  uint32_t user_id = 0;     // with which it makes files
  uint64_t begin_unix_ns = 0;
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
  return Program{status->innermost_pid != 0 ? status->innermost_pid : pid, status->user_ids[3],
                 begin_unix_ns};
}

// Anyone can put a file into /tmp under that name, before or after the process does; and a hard
// link to a file of root's, which would be read for whoever made it. Empty: nothing speaks against
// it.
std::string_view why_not_believed(const struct stat& file, const Program& program) {
  const auto modified_ns = static_cast<uint64_t>(file.st_mtim.tv_sec) * kNsPerSecond +
                           static_cast<uint64_t>(file.st_mtim.tv_nsec);
  const bool is_its_own = file.st_uid == program.user_id;
  if (!S_ISREG(file.st_mode)) return "it is no regular file";
  if (!is_its_own && file.st_uid != 0) return "it belongs to another user";
  if (!is_its_own && file.st_nlink != 1) return "it is root's and has another name, too";
  if (modified_ns + kClockError_ns < program.begin_unix_ns) {
    return "it is older than the program that runs";
  }
  return "";
}

tl::unexpected<Error> refusal(const std::string& path, uint32_t pid, std::string_view why) {
  return fail(ErrorCode::PermissionDenied,
              fmt::format("{} of process {} is not used: {}", path, pid, why));
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
  const std::string path = fmt::format("/tmp/perf-{}.map", program->pid_inside);
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
  struct stat status {};
  if (::fstat(found.get(), &status) != 0) return fail(ErrorCode::NotFound, path);
  if (const auto why = why_not_believed(status, *program); !why.empty()) {
    return refusal(path, pid, why);
  }
  auto opened = reopen_regular_file(found);
  if (!opened) return refusal(path, pid, opened.error().message);
  return opened;
}

}  // namespace sentry_prof::target
