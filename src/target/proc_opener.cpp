// Opens the files behind a target's mappings, none of which is to be trusted: paths may be links
// out of a container, FIFOs that block, devices whose opening has effects, or other files by now.
#include "os/clock.h"
#include "os/errors.h"
#include "os/privileges.h"
#include "target/image_files.h"
#include "target/mapped_file.h"
#include "target/mapping_kind.h"
#include "target/proc.h"
#include "target/process_files.h"

#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::target {

namespace {

bool is_expected_inode(const struct stat& status, const MappingFacts& mapping) {
  // Not the device: btrfs and overlayfs tell stat() another one than they tell maps. With a build
  // id the caller compares that, which is better than both.
  return mapping.inode == 0 || !mapping.build_id.empty() || status.st_ino == mapping.inode;
}

bool is_expected_file(const os::Fd& found, const MappingFacts& mapping) {
  struct stat status = {};
  return ::fstat(found.get(), &status) == 0 && is_expected_inode(status, mapping);
}

// `path` is one below the process's root, which stands before it where that is not ours.
bool links_to(const std::string& link, const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(link.c_str(), target, sizeof(target));
  return size > 0 && std::string_view(target, static_cast<size_t>(size)).ends_with(path);
}

// The exact inode that is mapped, even if it was deleted or replaced. Needs CAP_SYS_ADMIN or
// CAP_CHECKPOINT_RESTORE, and a mapping that has not been split since. A pid that was used again
// shows other files: they are compared. (By name as well, since the inodes of overlayfs in maps are
// those of its lower layers before Linux 6.8.)
os::Fd find_by_map_files(const MappingFacts& mapping) {
  const uint64_t begin = mapping.begin.value;
  const std::string link = fmt::format("{}/map_files/{:x}-{:x}", directory_of(mapping.pid), begin,
                                       begin + mapping.size_bytes);
  os::Fd found(::open(link.c_str(), O_PATH | O_CLOEXEC));
  if (!found.is_open()) return found;
  if (!is_expected_file(found, mapping) && !links_to(link, mapping.path)) found.reset();
  return found;
}

// The program that the process runs, if that is what is mapped: the exact inode again, and no
// capability is needed for a process of one's own. The name alone may be another process's by now.
os::Fd find_by_exe(const MappingFacts& mapping) {
  const std::string link = directory_of(mapping.pid) + "/exe";
  const bool has_name =
      links_to(link, mapping.path) || links_to(link, mapping.path + std::string(kDeletedSuffix));
  const bool can_be_proven = mapping.inode != 0 || !mapping.build_id.empty();
  if (!has_name || !can_be_proven) return os::Fd();
  os::Fd found(::open(link.c_str(), O_PATH | O_CLOEXEC));
  if (found.is_open() && !is_expected_file(found, mapping)) found.reset();
  return found;
}

// Times of files are those of the kernel's last tick (CONFIG_HZ_100).
constexpr uint64_t kFileTimeTick_ns = 10'000'000;
constexpr const char* kHasEnded = "its process ended before the file could be opened";
constexpr const char* kIsRefused =
    "it is looked for as its process's user, whom root may not become here (CAP_SETUID, "
    "CAP_SETGID)";

// Without a build id (Go's programs, rust-lld): the very inode, and not changed from
// `since_unix_ns` on. Not on btrfs and overlayfs, whose devices stat() does not tell.
bool is_proven_by_inode(const os::Fd& found, const MappingFacts& mapping, uint64_t since_unix_ns) {
  const auto facts = facts_of(found);
  return facts && mapping.inode != 0 && facts->inode == mapping.inode &&
         facts->device_major == mapping.device_major &&
         facts->device_minor == mapping.device_minor && facts->changed_unix_ns < since_unix_ns;
}

// Of a process that has ended, or whose user we cannot be: below our own root, where the file need
// not be the same, which the build id tells, or another one that only looks so to a process in a
// container. `why` it is not opened otherwise.
Result<std::shared_ptr<const ByteSource>> open_proven_file(const MappingFacts& mapping,
                                                           uint64_t since_unix_ns,
                                                           const char* why) {
  const os::Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const AsUserOf user(mapping.pid);  // root remains root: whose it was is not known any more
  const os::Fd found = find_below(root.get(), mapping.path, RESOLVE_CACHED);
  const bool is_proven = found.is_open() && (!mapping.build_id.empty() ||
                                             is_proven_by_inode(found, mapping, since_unix_ns));
  if (!is_proven) return fail(ErrorCode::Gone, why);
  return open_regular_file(found);
}

Result<std::shared_ptr<const ByteSource>> open_named_file(const MappingFacts& mapping,
                                                          uint64_t since_unix_ns) {
  const os::Fd root = open_root_of(mapping.pid);
  if (!root.is_open()) {
    const int error_number = errno;
    const bool is_gone = error_number == ENOENT || error_number == ESRCH;
    if (is_gone) return open_proven_file(mapping, since_unix_ns, kHasEnded);
    const bool is_refused = error_number == EACCES && !os::has_capability(os::kCapSysPtrace);
    if (is_refused) {
      return fail(
          ErrorCode::PermissionDenied,
          "opening it takes the right to ptrace its process: " + os::how_to_get(os::kCapSysPtrace));
    }
    return os::fail_with_errno(error_number, "the root directory of its process");
  }
  const AsUserOf user(mapping.pid);
  if (!user.is_known()) {
    return open_proven_file(mapping, since_unix_ns, user.is_refused() ? kIsRefused : kHasEnded);
  }
  const os::Fd found = find_below(root.get(), mapping.path);
  if (!found.is_open()) return os::fail_with_errno(errno, "cannot be opened");
  if (!is_expected_file(found, mapping)) {
    return fail(ErrorCode::NotFound, "another file has that name now");
  }
  return open_regular_file(found);
}

class ProcOpener final : public ImageOpener {
 public:
  Result<std::shared_ptr<const ByteSource>> open(const MappingFacts& mapping) override {
    const MappingKind kind = kind_of_mapping(mapping.path);
    if (kind == MappingKind::Vdso) return copy_own_vdso(mapping.size_bytes);
    if (kind == MappingKind::Anonymous) return fail(ErrorCode::Unsupported, "no file");
    for (const auto find : {find_by_map_files, find_by_exe}) {
      const os::Fd found = find(mapping);
      if (!found.is_open()) continue;
      if (auto file = open_regular_file(found)) return file;
    }
    if (kind == MappingKind::MemoryFd) return fail(ErrorCode::NotFound, "a memory file");
    return open_named_file(mapping, begin_unix_ns_);
  }

  Result<std::shared_ptr<const ByteSource>> open_by_path(const MappingFacts& mapping) override {
    if (kind_of_mapping(mapping.path) == MappingKind::File)
      return open_named_file(mapping, begin_unix_ns_);
    return fail(ErrorCode::NotFound, "has no name to be found by");
  }

  Result<std::shared_ptr<const ByteSource>> open_mapped(const MappingFacts& mapping) override {
    return MappedFile::open(mapping);
  }

  bool name_is_literal(const MappingFacts& mapping) override {
    const os::Fd root = open_root_of(mapping.pid);
    if (!root.is_open()) return false;
    const os::Fd found = find_below(root.get(), mapping.path);
    struct stat status = {};
    if (!found.is_open() || ::fstat(found.get(), &status) != 0) return false;
    // Records with a build id have no inode.
    const bool is_proven = !mapping.build_id.empty() && S_ISREG(status.st_mode);
    return mapping.inode == 0 ? is_proven : status.st_ino == mapping.inode;
  }

 private:
  // What was mapped from now on was no other file, if that has not changed since.
  const uint64_t begin_unix_ns_ = os::unix_ns() - kFileTimeTick_ns;
};

}  // namespace

std::unique_ptr<ImageOpener> make_proc_opener() { return std::make_unique<ProcOpener>(); }

}  // namespace sentry_prof::target
