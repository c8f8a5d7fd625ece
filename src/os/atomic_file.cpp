#include "os/atomic_file.h"

#include "os/errors.h"
#include "os/paths.h"
#include "os/privileges.h"
#include "os/temporary_name.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

std::string_view next_step(int error_number) {
  switch (error_number) {
    case ENOTDIR:
      return "A file has the name of a directory of that path: name another place.";
    case ENOENT:
      return "Create the directory first, or name another place.";
    case EACCES:
    case EPERM:
      return "Name a place where you may create files.";
    case EROFS:
      return "The file system is mounted read-only: name another place.";
    case ENOSPC:
    case EDQUOT:
      return "Make room there, or name another place.";
    case EFBIG:
      return "Raise the limit of file sizes (ulimit -f), or record for a shorter time.";
    case EMFILE:
    case ENFILE:
      return "Raise the limit of open files (ulimit -n).";
    case ENAMETOOLONG:
      return "Choose a shorter name.";
    default:
      return "Name another place.";
  }
}

[[nodiscard]] tl::unexpected<Error> fail_to_write(int error_number, const std::string& path,
                                                  const std::string& what, std::string_view step) {
  return fail(error_code_of(error_number), fmt::format("cannot write {}: {}: {}. {}", path, what,
                                                       describe_errno(error_number), step));
}

[[nodiscard]] tl::unexpected<Error> fail_to_write(int error_number, const std::string& path,
                                                  const std::string& what) {
  return fail_to_write(error_number, path, what, next_step(error_number));
}

// O_PATH serves a directory that may be written but not listed; it cannot be synced then.
Result<Fd> open_directory(const SplitPath& target, const std::string& path) {
  Fd directory(::open(target.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open() && errno == EACCES) {
    directory = Fd(::open(target.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  if (!directory.is_open()) return fail_to_write(errno, path, "directory " + target.directory);
  return directory;
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// /dev/stdout and the like: links into /proc, which a rename would replace, for everybody.
bool links_into_proc(int directory_fd, const std::string& name) {
  char target[8] = {};
  return ::readlinkat(directory_fd, name.c_str(), target, sizeof(target) - 1) > 0 &&
         std::string_view(target).starts_with("/proc/");
}

// In a sticky directory (/tmp) only root and the owners of file and directory may replace a file.
bool is_protected_by_sticky_bit(int directory_fd, const struct stat& existing) {
  struct stat directory = {};
  if (::fstat(directory_fd, &directory) != 0 || (directory.st_mode & S_ISVTX) == 0) return false;
  const uid_t self = ::geteuid();
  return self != 0 && self != existing.st_uid && self != directory.st_uid;
}

// Nobody may rename another one over such a file.
bool is_immutable(int directory_fd, const char* name) {
  struct statx status = {};
  return ::statx(directory_fd, name, AT_SYMLINK_NOFOLLOW, 0, &status) == 0 &&
         (status.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
}

Result<void> check_replaceable(int directory_fd, const SplitPath& target, const std::string& path) {
  struct stat existing = {};
  const char* name = target.name.c_str();
  if (::fstatat(directory_fd, name, &existing, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENAMETOOLONG) return fail_to_write(errno, path, "its name");
    return {};
  }
  if (is_immutable(directory_fd, name)) {
    return fail(ErrorCode::PermissionDenied,
                fmt::format("cannot write {}: it may not be replaced (chattr +i or +a). Choose "
                            "another name.",
                            path));
  }
  if (is_protected_by_sticky_bit(directory_fd, existing)) {
    return fail(
        ErrorCode::PermissionDenied,
        fmt::format("cannot write {}: it belongs to another user. Choose another name.", path));
  }
  // A link is replaced, not followed; but a link to a device shows that a stream was meant.
  struct stat pointed_at = existing;
  if (S_ISLNK(existing.st_mode)) ::fstatat(directory_fd, name, &pointed_at, 0);
  if (links_into_proc(directory_fd, target.name)) {
    return fail(
        ErrorCode::Unsupported,
        fmt::format("cannot write {}: it stands for an open stream. Use '-' for stdout.", path));
  }
  if (S_ISREG(pointed_at.st_mode) || S_ISLNK(pointed_at.st_mode)) return {};
  return fail(S_ISDIR(pointed_at.st_mode) ? ErrorCode::InvalidArgument : ErrorCode::Unsupported,
              fmt::format("cannot write {}: it is {}. Name a file, or use '-' for stdout.", path,
                          kind_of(pointed_at.st_mode)));
}

// Under sudo the file is for the user who typed the command. A file system that knows no owners
// refuses this, and a file of root's is then better than none.
void give_to_invoking_user(int fd) {
  if (::geteuid() != 0) return;
  const auto uid = sudo_uid();
  const auto gid = sudo_gid();
  if (uid && gid && ::fchown(fd, *uid, *gid) != 0) return;
}

// EINVAL: a file system without such a thing as syncing. Not so EIO: what was written may be lost.
bool sync_failed(int fd) {
  int result = 0;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result != 0 && errno != EINVAL;
}

}  // namespace

AtomicFile::AtomicFile(AtomicFile&& other) noexcept { *this = std::move(other); }

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  directory_ = std::move(other.directory_);
  file_ = std::move(other.file_);
  path_ = std::move(other.path_);
  name_ = std::move(other.name_);
  temporary_name_ = std::exchange(other.temporary_name_, {});
  written_bytes_ = other.written_bytes_;
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

Result<AtomicFile> AtomicFile::create(const std::string& path, Leftovers leftovers) {
  auto target = split_path(path);
  if (!target) return tl::unexpected(std::move(target.error()));
  auto directory = open_directory(*target, path);
  if (!directory) return tl::unexpected(std::move(directory.error()));
  if (auto check = check_replaceable(directory->get(), *target, path); !check) {
    return tl::unexpected(std::move(check.error()));
  }
  if (leftovers == Leftovers::Remove) remove_stale_temporaries(directory->get(), target->name);

  AtomicFile result;
  result.directory_ = std::move(*directory);
  result.path_ = path;
  result.name_ = target->name;
  std::string temporary_name = make_temporary_name(target->name);
  result.file_ = Fd(::openat(result.directory_.get(), temporary_name.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!result.file_.is_open()) {
    const int error_number = errno;
    // The directory is there, or was when it was opened.
    const auto step = error_number == ENOENT ? "No file can be made there: name another place."
                                             : next_step(error_number);
    return fail_to_write(error_number, path, "creating a file in " + target->directory, step);
  }
  result.temporary_name_ = std::move(temporary_name);
  ::flock(result.file_.get(), LOCK_EX | LOCK_NB);  // says "in use", see remove_stale_temporaries
  give_to_invoking_user(result.file_.get());
  return result;
}

void AtomicFile::discard() {
  if (temporary_name_.empty()) return;
  ::unlinkat(directory_.get(), temporary_name_.c_str(), 0);
  temporary_name_.clear();
  file_.reset();
}

tl::unexpected<Error> AtomicFile::give_up(int error_number, uint64_t wanted_bytes) {
  discard();
  return fail_to_write(error_number, path_,
                       fmt::format("{} bytes needed, {} written", wanted_bytes, written_bytes_));
}

Result<void> AtomicFile::write(std::string_view bytes) {
  if (temporary_name_.empty())
    return fail(ErrorCode::Io, path_ + ": not open for writing any more");
  const uint64_t wanted_bytes = written_bytes_ + bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return give_up(count < 0 ? errno : ENOSPC, wanted_bytes);
    bytes.remove_prefix(static_cast<size_t>(count));
    written_bytes_ += static_cast<uint64_t>(count);
  }
  return {};
}

Result<void> AtomicFile::commit() {
  if (temporary_name_.empty())
    return fail(ErrorCode::Io, path_ + ": not open for writing any more");
  if (sync_failed(file_.get())) return give_up(errno, written_bytes_);
  if (::renameat(directory_.get(), temporary_name_.c_str(), directory_.get(), name_.c_str()) != 0) {
    const int error_number = errno;
    discard();
    return fail_to_write(error_number, path_, "putting the finished file in its place");
  }
  temporary_name_.clear();
  // Still locked: who takes what is there (upload::Spool) waits until it is known to stay. EBADF:
  // the directory could only be opened as O_PATH.
  if (sync_failed(directory_.get()) && errno != EBADF) {
    return fail_to_write(errno, path_, "the file is there, but may not survive a power failure");
  }
  return {};
}

Result<void> check_writable(const std::string& path) {
  auto probe = AtomicFile::create(path);
  if (!probe) return tl::unexpected(std::move(probe.error()));
  return {};
}

Result<void> make_directory(const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) != 0) {
    if (errno == EEXIST) return {};
    return fail_to_write(errno, path, "creating this directory");
  }
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.is_open()) return {};
  give_to_invoking_user(directory.get());
  const Fd above(::openat(directory.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (above.is_open()) ::fsync(above.get());
  return {};
}

}  // namespace sentry_prof::os
