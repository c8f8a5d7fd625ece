#include "target/process_files.h"

#include "os/file.h"
#include "os/proc_text.h"
#include "os/process.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sentry_prof::target {

namespace {

// openat2 gives EAGAIN when a rename or mount races with its walk.
constexpr int kMaxRaces = 8;
constexpr unsigned kNoId = static_cast<unsigned>(-1);

std::optional<FileUser> file_user_of(uint32_t pid) {
  const auto text = os::read_small_file(fmt::format("/proc/{}/status", pid));
  const auto status = text ? os::parse_status(*text) : std::nullopt;
  if (!status) return std::nullopt;
  return FileUser{status->user_ids[3], status->group_ids[3]};
}

}  // namespace

AsUserOf::AsUserOf(uint32_t pid) : AsUserOf(file_user_of(pid)) {}

AsUserOf::AsUserOf(const std::optional<FileUser>& user) {
  if (::geteuid() != 0) {
    ordinary_.emplace();
    return;
  }
  if (!user) return;
  // The group first: without root's user id it could not be changed.
  previous_gid_ = static_cast<gid_t>(::setfsgid(user->group_id));
  previous_uid_ = static_cast<uid_t>(::setfsuid(user->user_id));
  is_changed_ = true;
  // These report no error (setfsuid(2)); an id that there is not tells what holds.
  is_its_user_ = static_cast<gid_t>(::setfsgid(kNoId)) == user->group_id &&
                 static_cast<uid_t>(::setfsuid(kNoId)) == user->user_id;
}

AsUserOf::~AsUserOf() {
  if (!is_changed_) return;
  ::setfsuid(previous_uid_);
  ::setfsgid(previous_gid_);
}

std::string directory_of(uint32_t pid) {
  return fmt::format("/proc/{}", os::living_thread_of(static_cast<pid_t>(pid)));
}

os::Fd open_root_of(uint32_t pid) {
  return os::Fd(::open((directory_of(pid) + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

os::Fd find_below(int root, const std::string& path, uint64_t resolve_flags) {
#ifdef SYS_openat2
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve_flags;
  for (int attempt = 0; attempt < kMaxRaces; ++attempt) {
    const long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how));
    if (fd >= 0) return os::Fd(static_cast<int>(fd));
    const bool was_race = errno == EAGAIN && (resolve_flags & RESOLVE_CACHED) == 0;
    if (!was_race && errno != EINTR) break;
  }
#else
  errno = ENOSYS;
#endif
  return os::Fd();
}

}  // namespace sentry_prof::target
