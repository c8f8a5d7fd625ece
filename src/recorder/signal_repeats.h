// Whether a signal asks once more, or for what was asked already. Pure.
#pragma once

#include "base/time_units.h"

#include <csignal>
#include <cstdint>

namespace sentry_prof::recorder {

// timeout(1) and some supervisors signal a process and then its group, microseconds apart, systemd
// a SIGHUP behind its SIGTERM (SendSIGHUP=): that is one request, not an impatient second one. All
// times are CLOCK_MONOTONIC nanoseconds.
class SignalRepeats {
 public:
  static constexpr uint64_t kWithin_ns = kNsPerSecond / 10;

  // At that time none was pending.
  void on_none(uint64_t time_ns) { none_at_ns_ = time_ns; }

  // Of the next one, taken at `time_ns`: whether it repeats the last that did not.
  //
  // What a process sent it may have sent as soon as none was pending: what we did since may have
  // taken long. A terminal's ^C is typed by somebody who waits, and its hang-up says that nobody is
  // there any more.
  [[nodiscard]] bool is_repeat(int signal, bool is_from_kernel, uint64_t time_ns) {
    const uint64_t sent_ns = is_from_kernel ? time_ns : none_at_ns_;
    if (is_same_request(signal, is_from_kernel) && sent_ns < time_ns_ + kWithin_ns) return true;
    signal_ = signal;
    time_ns_ = time_ns;
    return false;
  }

  // How much longer it takes, from when none was pending, until no repeat is expected any more.
  uint64_t left_ns() const {
    const uint64_t end_ns = signal_ == 0 ? 0 : time_ns_ + kWithin_ns;
    return end_ns > none_at_ns_ ? end_ns - none_at_ns_ : 0;
  }

 private:
  bool is_same_request(int signal, bool is_from_kernel) const {
    const bool is_behind_term = signal_ == SIGTERM && signal == SIGHUP && !is_from_kernel;
    return signal == signal_ || is_behind_term || (signal_ == SIGHUP && signal == SIGTERM);
  }

  int signal_ = 0;  // 0: none so far
  uint64_t time_ns_ = 0;
  uint64_t none_at_ns_ = 0;
};

}  // namespace sentry_prof::recorder
