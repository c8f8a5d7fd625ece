#include "os/file.h"

#include "base/time_units.h"
#include "os/errors.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

uint64_t size_of(const struct stat& status) {
  return static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
}

uint64_t modified_unix_ns_of(const struct stat& status) {
  if (status.st_mtim.tv_sec < 0) return 0;
  return static_cast<uint64_t>(status.st_mtim.tv_sec) * kNsPerSecond +
         static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

}  // namespace

Result<std::shared_ptr<const FileByteSource>> FileByteSource::adopt(Fd fd, Changes changes) {
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return fail_with_errno(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::Unsupported, "not a regular file");
  return std::shared_ptr<const FileByteSource>(
      new FileByteSource(std::move(fd), size_of(status), changes, modified_unix_ns_of(status)));
}

Result<std::shared_ptr<const FileByteSource>> FileByteSource::open(const std::string& path) {
  // O_NONBLOCK: a FIFO in the file's place must not block the open.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.is_open()) return fail_with_errno(errno, path);
  auto file = adopt(std::move(fd));
  if (!file) return fail(file.error().code, path + ": " + file.error().message);
  return file;
}

uint64_t FileByteSource::modified_unix_ns() const {
  struct stat status = {};
  return ::fstat(fd_.get(), &status) == 0 ? modified_unix_ns_of(status) : 0;
}

// The kernel changes the time before the bytes. What is written within the same tick of its clock
// as the opening (4 ms before Linux 6.13) goes unseen.
bool FileByteSource::is_unchanged() const {
  if (changes_ == Changes::Followed) return true;
  struct stat status = {};
  const bool is_same = ::fstat(fd_.get(), &status) == 0 && size_of(status) == size_bytes_ &&
                       modified_unix_ns_of(status) == modified_unix_ns_;
  if (!is_same) was_changed_ = true;
  return is_same;
}

namespace {

bool is_range_of_file(uint64_t offset, uint64_t size_bytes) {
  constexpr auto kMaxOffset = static_cast<uint64_t>(std::numeric_limits<off_t>::max());
  return offset <= kMaxOffset && size_bytes <= kMaxOffset - offset;
}

}  // namespace

bool FileByteSource::read_at(uint64_t offset, std::span<std::byte> out) const {
  if (!is_range_of_file(offset, out.size())) return false;
  while (!out.empty()) {
    const ssize_t count = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    out = out.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return is_unchanged();
}

// Pieces of a few KiB, in no order, would each wait for a disk that could have read all of it at
// once. Only asked for: what is in the page cache already costs some 50 ns a page.
bool FileByteSource::will_be_read_in_pieces(uint64_t offset, uint64_t size_bytes) const {
  if (!is_range_of_file(offset, size_bytes)) return false;
  ::posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(size_bytes),
                  POSIX_FADV_WILLNEED);
  return true;
}

namespace {

// Appends until the end of the file. Files of /proc have no size that stat could tell.
Result<void> read_to_end(int fd, const std::string& path, size_t limit_bytes, std::string& text) {
  constexpr size_t kPiece_bytes = 8 * 1024;  // files of /proc give a page at a time
  for (;;) {
    const size_t begin = text.size();
    text.resize(begin + kPiece_bytes);
    const ssize_t count = ::read(fd, text.data() + begin, kPiece_bytes);
    const int error_number = errno;
    text.resize(begin + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return {};
    if (count < 0 && error_number != EINTR) return fail_with_errno(error_number, path);
    if (text.size() > limit_bytes) {
      return fail(ErrorCode::LimitExceeded,
                  fmt::format("{}: larger than {} bytes", path, limit_bytes));
    }
  }
}

}  // namespace

Result<std::string> read_small_file(const std::string& path, size_t limit_bytes) {
  // O_NONBLOCK: a FIFO in the file's place must not block the open.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.is_open()) return fail_with_errno(errno, path);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return fail_with_errno(errno, path);
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::Unsupported, path + ": not a regular file");
  }
  std::string text;
  if (auto read = read_to_end(fd.get(), path, limit_bytes, text); !read) {
    return tl::unexpected(std::move(read.error()));
  }
  return text;
}

}  // namespace sentry_prof::os
