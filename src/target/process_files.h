// Finding files as a process sees them: below its root, with its user's rights (the Linux half).
#pragma once

#include "os/fd.h"
#include "os/ordinary_reader.h"

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace sentry_prof::target {

// With whose rights a process opens files: its file system ids (proc_pid_status(5)).
struct FileUser {
  uid_t user_id = 0;
  gid_t group_id = 0;
};

// While it lives, files are opened with the rights of the target's user: root must not read for a
// target what that target could not read itself, nor who may read all files without being root. Of
// this thread only. Supplementary groups stay.
class AsUserOf {
 public:
  explicit AsUserOf(uint32_t pid);
  // Of a process that may have ended meanwhile.
  explicit AsUserOf(const FileUser& user) : AsUserOf(std::optional(user)) {}
  AsUserOf(const AsUserOf&) = delete;
  AsUserOf& operator=(const AsUserOf&) = delete;
  ~AsUserOf();

  // False if root would read with its own rights: the process has ended, or root may not become
  // its user (no CAP_SETUID, a user that our namespace does not have).
  bool is_known() const { return is_its_user_ || ordinary_.has_value(); }
  // The latter of these.
  bool is_refused() const { return is_changed_ && !is_its_user_; }

 private:
  explicit AsUserOf(const std::optional<FileUser>& user);

  std::optional<os::AsOrdinaryReader> ordinary_;
  bool is_changed_ = false;
  bool is_its_user_ = false;
  uid_t previous_uid_ = 0;
  gid_t previous_gid_ = 0;
};

// Where /proc shows what the process has, also when its main thread has ended before the others:
// "/proc/ID".
std::string directory_of(uint32_t pid);

// An O_PATH descriptor of the process's root directory; closed, with errno, if it has ended.
os::Fd open_root_of(uint32_t pid);

// An O_PATH descriptor of `path` below `root`: no symbolic link leads out of it, and nothing is
// opened yet. Closed, with errno, if there is none. `resolve_flags` (openat2(2)): RESOLVE_CACHED
// takes only what the kernel remembers, so that nothing is mounted or asked of a server for it
// (Linux 5.12; before, nothing is found).
os::Fd find_below(int root, const std::string& path, uint64_t resolve_flags = 0);

}  // namespace sentry_prof::target
