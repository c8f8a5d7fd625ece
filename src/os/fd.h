// A file descriptor with an owner.
#pragma once

#include <utility>

#include <unistd.h>

namespace sentry_prof::os {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// Whether there is something to read, without waiting for it: of a pidfd, whether the process has
// ended. It stays so when that is reaped.
bool is_readable(int fd);

}  // namespace sentry_prof::os
