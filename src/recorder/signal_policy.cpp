#include "recorder/signal_policy.h"

#include "os/clock.h"

#include <signal.h>

namespace sentry_prof::recorder {

namespace {
// timeout(1) and some supervisors signal a process and then its group, microseconds apart: that is
// one request, not an impatient second one.
constexpr uint64_t kRepeat_ns = 100'000'000;
}  // namespace

bool SignalPolicy::is_repeat(int signal) {
  const uint64_t now_ns = os::monotonic_ns();
  if (signal == last_signal_ && now_ns - last_time_ns_ < kRepeat_ns) return true;
  last_signal_ = signal;
  last_time_ns_ = now_ns;
  return false;
}

void SignalPolicy::pass_on(const os::SignalSet::Taken& signal) const {
  if (!signal.is_from_terminal) ::kill(child_pid_, signal.number);
}

bool SignalPolicy::ends_recording() {
  while (const auto signal = signals_->take()) {
    if (is_repeat(signal->number)) continue;
    if (child_pid_ == kNoChild || has_passed_on_) {
      ending_signal_ = signal->number;
      return true;
    }
    has_passed_on_ = true;
    pass_on(*signal);
    // Somebody wants an end, and the command cannot have heard.
    if (!signal->is_from_terminal && signals_->is_ignored_by_children(signal->number)) {
      ending_signal_ = signal->number;
      return true;
    }
  }
  return false;
}

void SignalPolicy::while_finishing() {
  while (const auto signal = signals_->take()) {
    if (is_repeat(signal->number)) continue;
    if (child_pid_ == kNoChild || ending_signal_ != 0) os::die_by_signal(signal->number);
    pass_on(*signal);
  }
}

}  // namespace sentry_prof::recorder
