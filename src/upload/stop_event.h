// A wish to end that other threads can wait for: a descriptor that becomes readable for good.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

namespace sentry_prof::upload {

class StopEvent {
 public:
  // LimitExceeded if there are no descriptors left.
  static Result<StopEvent> create();
  int fd() const { return fd_.get(); }
  void set() const;

 private:
  explicit StopEvent(os::Fd fd) : fd_(std::move(fd)) {}
  os::Fd fd_;
};

}  // namespace sentry_prof::upload
