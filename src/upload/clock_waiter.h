// The uploader's time: the system's clocks, and waits that a readable descriptor ends.
#pragma once

#include "upload/uploader.h"

#include <cstdint>

namespace sentry_prof::upload {

class ClockWaiter final : public Waiter {
 public:
  // `stop_fd` (an eventfd, a signalfd) is readable once the user wants to end. It is not read from
  // and must outlive the waiter.
  explicit ClockWaiter(int stop_fd) : stop_fd_(stop_fd) {}

  uint64_t now_ns() const override;
  int64_t unix_now_s() const override;
  bool wait(uint64_t duration_ns) override;
  bool is_stopped() const;

 private:
  int stop_fd_;
};

}  // namespace sentry_prof::upload
