#include "target/jit_map.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/proc_text.h"
#include "target/image_files.h"
#include "target/process_files.h"

#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace sentry_prof::target {

namespace {

// How far the clocks that are compared may be apart: a file's time is that of the last tick, a
// process's start a hundredth of a second, and the wall clock is set now and then.
constexpr int64_t kClockError_s = 2;

struct Owner {
  uint32_t pid_inside = 0;  // in its own pid namespace
  uid_t user_id = 0;
  int64_t start_unix_s = 0;
};

int64_t seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec;
}

std::optional<Owner> owner_of(uint32_t pid) {
  const auto stat_text = os::read_small_file(fmt::format("/proc/{}/stat", pid));
  const auto status_text = os::read_small_file(fmt::format("/proc/{}/status", pid));
  const auto stat = stat_text ? os::parse_stat(*stat_text) : std::nullopt;
  const auto status = status_text ? os::parse_status(*status_text) : std::nullopt;
  if (!stat || !status) return std::nullopt;
  const auto age_s =
      seconds_of(CLOCK_BOOTTIME) - static_cast<int64_t>(stat->start_ticks) / ::sysconf(_SC_CLK_TCK);
  // Without CONFIG_PID_NS there is no NSpid.
  return Owner{status->innermost_pid != 0 ? status->innermost_pid : pid, status->user_ids[1],
               seconds_of(CLOCK_REALTIME) - age_s};
}

// Anyone can put a file into /tmp under that name, before or after the process does; and a hard
// link to a file of root's, which would be read for whoever made it.
bool can_be_believed(const struct stat& file, const Owner& owner) {
  const bool has_owner = file.st_uid == owner.user_id || (file.st_uid == 0 && file.st_nlink == 1);
  return S_ISREG(file.st_mode) && has_owner &&
         file.st_mtim.tv_sec + kClockError_s >= owner.start_unix_s;
}

}  // namespace

JitMap find_jit_map(uint32_t pid) {
  const auto owner = owner_of(pid);
  const os::Fd root = open_root_of(pid);
  if (!owner || !root.is_open()) return {};
  const AsUserOf user(pid);
  const os::Fd directory = find_below(root.get(), "/tmp");
  if (!directory.is_open()) return {};
  const os::Fd found = find_below(directory.get(), fmt::format("perf-{}.map", owner->pid_inside),
                                  RESOLVE_NO_SYMLINKS);
  struct stat status {};
  if (!found.is_open() || ::fstat(found.get(), &status) != 0) return {};
  if (!can_be_believed(status, *owner)) return {};
  auto opened = reopen_regular_file(found);
  if (!opened) return {};
  const auto file = std::make_shared<const os::Fd>(std::move(*opened));
  return [file]() -> std::shared_ptr<const ByteSource> {
    os::Fd again(::fcntl(file->get(), F_DUPFD_CLOEXEC, 0));
    auto bytes = os::FileByteSource::adopt(std::move(again));
    return bytes ? *bytes : nullptr;
  };
}

}  // namespace sentry_prof::target
