// A file named by a user, read once from its beginning to its end, whatever kind of file it is.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sentry_prof::os {

class InputFile {
 public:
  // "-" is standard input. Regular files, pipes, terminals and other character devices; Unsupported
  // for directories, block devices and sockets. Waits for nothing. Messages begin with the path.
  static Result<InputFile> open(const std::string& path);

  // How many bytes were read; 0 at the end. Waits for a pipe's writer to write, as a filter does,
  // but not for one to come: Io where nobody has a FIFO open for writing.
  Result<size_t> read(std::span<char> out);

  // Of a regular file: the bytes from here to its end, at the time of opening. It may change
  // meanwhile; files of /proc say 0.
  std::optional<uint64_t> size_bytes() const { return size_bytes_; }
  // For messages: the path, or "standard input".
  const std::string& name() const { return name_; }

 private:
  InputFile(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  Result<void> look();
  Result<bool> wait_for_bytes(int timeout_ms);

  Fd fd_;
  std::string name_;
  std::optional<uint64_t> size_bytes_;
  bool is_pipe_ = false;
  bool had_writer_ = false;  // of a pipe
};

// All of a small one, to its end. As open() and read(); LimitExceeded above `limit_bytes`.
Result<std::string> read_input(const std::string& path, size_t limit_bytes);

}  // namespace sentry_prof::os
