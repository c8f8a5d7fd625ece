#include "os/input_file.h"

#include "os/errors.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

// Time for a writer that is being started to open its end of a FIFO (`cat profile > fifo &`).
constexpr int kWriterComes_ms = 2'000;
constexpr int kForEver = -1;

}  // namespace

Result<InputFile> InputFile::open(const std::string& path) {
  const bool is_standard_input = path == "-";
  // O_NONBLOCK: the open of a FIFO must not wait for a writer, nor that of a device for a line.
  Fd fd(is_standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  InputFile file(std::move(fd), is_standard_input ? "standard input" : path);
  if (!file.fd_.is_open()) return fail_with_errno(errno, file.name_);
  if (auto ok = file.look(); !ok) return tl::unexpected(std::move(ok.error()));
  return file;
}

Result<void> InputFile::look() {
  struct stat status = {};
  if (::fstat(fd_.get(), &status) != 0) return fail_with_errno(errno, name_);
  if (S_ISDIR(status.st_mode)) return fail(ErrorCode::Unsupported, name_ + ": is a directory");
  if (S_ISBLK(status.st_mode) || S_ISSOCK(status.st_mode)) {
    return fail(ErrorCode::Unsupported, name_ + ": is neither a file nor a pipe");
  }
  is_pipe_ = S_ISFIFO(status.st_mode);
  if (S_ISREG(status.st_mode)) {
    // Standard input may have been read by somebody before.
    const off_t begin = std::max<off_t>(::lseek(fd_.get(), 0, SEEK_CUR), 0);
    size_bytes_ = static_cast<uint64_t>(std::max<off_t>(status.st_size - begin, 0));
  }
  return {};
}

// False if none came in time and nobody is there who could write any.
Result<bool> InputFile::wait_for_bytes(int timeout_ms) {
  pollfd waiting{fd_.get(), POLLIN, 0};
  int count = 0;
  do {
    count = ::poll(&waiting, 1, timeout_ms);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return fail_with_errno(errno, name_);
  return count != 0;
}

Result<size_t> InputFile::read(std::span<char> out) {
  for (;;) {
    const ssize_t count = ::read(fd_.get(), out.data(), out.size());
    if (count > 0) {
      had_writer_ = true;
      return static_cast<size_t>(count);
    }
    const int error_number = errno;
    if (count < 0 && error_number == EINTR) continue;
    if (count < 0 && error_number != EAGAIN) return fail_with_errno(error_number, name_);
    // Linux: a FIFO without a writer is at its end (read gives 0), one whose writer is silent is
    // not (EAGAIN); fifo(7), pipe(7).
    if (count == 0 && (!is_pipe_ || had_writer_)) return 0;
    if (count < 0) had_writer_ = true;
    const auto came = wait_for_bytes(count < 0 ? kForEver : kWriterComes_ms);
    if (!came) return tl::unexpected(came.error());
    if (!*came) return fail(ErrorCode::Io, name_ + ": a pipe that nobody writes to");
    had_writer_ = true;
  }
}

Result<std::string> read_input(const std::string& path, size_t limit_bytes) {
  constexpr size_t kPiece_bytes = 8 * 1024;
  auto file = InputFile::open(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  std::string text;
  for (;;) {
    const size_t begin = text.size();
    text.resize(begin + kPiece_bytes);
    const auto count = file->read(std::span(text).subspan(begin));
    if (!count) return tl::unexpected(count.error());
    text.resize(begin + *count);
    if (*count == 0) return text;
    if (text.size() > limit_bytes) {
      return fail(ErrorCode::LimitExceeded,
                  fmt::format("{}: larger than {} bytes", file->name(), limit_bytes));
    }
  }
}

}  // namespace sentry_prof::os
