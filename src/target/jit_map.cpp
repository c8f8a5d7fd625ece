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
  uint32_t user_id = 0;  // with which it makes files
  uint64_t begin_unix_ns = 0;
  std::string_view begin_is_of = "the program that runs";
  uint64_t end_unix_ns = kNotYet_ns;  // of what was recorded of it
};

// Of a process that is there, as a zombie at least.
struct Facts {
  uint64_t start_ticks = 0;  // ProcStat
  uint32_t pid_inside = 0;   // in the process's own pid namespace
  FileUser user;
};

std::optional<Facts> read_facts(uint32_t pid) {
  const auto stat_text = os::read_small_file(fmt::format("/proc/{}/stat", pid));
  const auto status_text = os::read_small_file(fmt::format("/proc/{}/status", pid));
  const auto stat = stat_text ? os::parse_stat(*stat_text) : std::nullopt;
  const auto status = status_text ? os::parse_status(*status_text) : std::nullopt;
  if (!stat || !status) return std::nullopt;
  // Without CONFIG_PID_NS there is no NSpid.
  return Facts{.start_ticks = stat->start_ticks,
               .pid_inside = status->innermost_pid != 0 ? status->innermost_pid : pid,
               .user = {status->user_ids[3], status->group_ids[3]}};
}

uint64_t start_unix_ns(uint64_t start_ticks) {
  const auto ticks_per_second = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  const uint64_t start_ns = start_ticks * (kNsPerSecond / ticks_per_second);
  return os::unix_ns() - os::boottime_ns() + start_ns;
}

// As JitMapFinder::open() is told it.
uint64_t begin_unix_ns(uint64_t start_ticks, uint64_t program_begin_ns) {
  return program_begin_ns != 0 ? os::unix_ns() - os::monotonic_ns() + program_begin_ns
                               : start_unix_ns(start_ticks);
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
  struct statx status = {};
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
  Program program{.user_id = ::geteuid(),
                  .begin_unix_ns = process.program_begin_unix_ns,
                  .begin_is_of = "the program that ran",
                  .end_unix_ns = std::min(process.recording_end_unix_ns, kNotYet_ns)};
  if (program.begin_unix_ns != 0) return program;
  const auto living = read_facts(process.pid);
  const uint64_t living_since_unix_ns = living ? start_unix_ns(living->start_ticks) : 0;
  const bool is_it = living && living_since_unix_ns <= process.recording_begin_unix_ns;
  program.begin_unix_ns = is_it ? living_since_unix_ns : process.recording_begin_unix_ns;
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

// Where a process's map is, or will be.
struct JitMapFinder::Place {
  uint32_t pid = 0;
  uint64_t program_begin_ns = 0;
  Facts facts;
  os::Fd directory;  // O_PATH, of the /tmp that it sees
};

namespace {

// Not the root directory: where a mount namespace ends with its last process, nothing is mounted
// below the root any more.
os::Fd find_tmp(uint32_t pid, const FileUser& user) {
  const os::Fd root = open_root_of(pid);
  const AsUserOf as_user(user);
  return root.is_open() && as_user.is_known() ? find_below(root.get(), "/tmp") : os::Fd();
}

Result<os::Fd> open_map_in(const os::Fd& tmp, uint32_t pid, uint64_t program_begin_ns,
                           const Facts& facts) {
  const std::string path = path_of(facts.pid_inside);
  const AsUserOf user(facts.user);
  if (user.is_refused()) {
    return fail(ErrorCode::PermissionDenied,
                fmt::format("{} of process {} is not looked for: root may not become that "
                            "process's user here (CAP_SETUID, CAP_SETGID)",
                            path, pid));
  }
  if (!tmp.is_open() || !user.is_known()) return fail(ErrorCode::NotFound, path);
  const os::Fd found = find_below(tmp.get(), path.substr(path.rfind('/') + 1), RESOLVE_NO_SYMLINKS);
  if (!found.is_open()) {
    return errno == ELOOP ? refusal(path, pid, "it is a link") : fail(ErrorCode::NotFound, path);
  }
  return open_if_believed(found, path, pid,
                          {.user_id = facts.user.user_id,
                           .begin_unix_ns = begin_unix_ns(facts.start_ticks, program_begin_ns)});
}

}  // namespace

JitMapFinder::JitMapFinder() = default;
JitMapFinder::~JitMapFinder() = default;

// What is known of a living process is read anew each time: it may have become another user's.
Result<os::Fd> JitMapFinder::open(uint32_t pid, uint64_t program_begin_ns) {
  auto known = take_place(pid);
  const auto facts = read_facts(pid);
  const bool is_another = facts && known && facts->start_ticks != known->facts.start_ticks;
  os::Fd tmp = facts && !is_another ? find_tmp(pid, facts->user) : os::Fd();
  const bool is_known = known && known->program_begin_ns == program_begin_ns;
  if (!tmp.is_open() && is_known) {
    return open_map_in(known->directory, pid, program_begin_ns, known->facts);
  }
  if (!facts || is_another) return fail(ErrorCode::NotFound, "the process has ended");
  auto map = open_map_in(tmp, pid, program_begin_ns, *facts);
  if (!map && tmp.is_open()) keep({pid, program_begin_ns, *facts, std::move(tmp)});
  return map;
}

std::optional<JitMapFinder::Place> JitMapFinder::take_place(uint32_t pid) {
  const auto known = std::ranges::find(places_, pid, &Place::pid);
  if (known == places_.end()) return std::nullopt;
  std::optional<Place> place(std::move(*known));
  places_.erase(known);
  return place;
}

void JitMapFinder::keep(Place place) {
  if (places_.size() >= kMaxPlaces) places_.erase(places_.begin());
  places_.push_back(std::move(place));
}

Result<os::Fd> open_recorded_jit_map(const RecordedProcess& process) {
  const std::string path = path_of(process.pid);
  const os::Fd found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.is_open()) return fail(ErrorCode::NotFound, path);
  return open_if_believed(found, path, process.pid, program_of(process));
}

}  // namespace sentry_prof::target
