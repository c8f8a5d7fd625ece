#include "recorder/signal_policy.h"

#include "os/clock.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace sentry_prof::recorder {

namespace {
// Sent by this process, to a group it belongs to.
bool is_own(const os::SignalSet::Taken& signal) {
  return signal.sender_pid == static_cast<uint32_t>(::getpid());
}

}  // namespace

std::optional<os::SignalSet::Taken> SignalPolicy::take() {
  for (;;) {
    const uint64_t before_ns = os::monotonic_ns();
    const auto signal = signals_->take();
    if (!signal) {
      repeats_.on_none(before_ns);
      return std::nullopt;
    }
    if (is_own(*signal)) continue;
    if (signal->number == SIGINT && signal->is_from_kernel) is_interrupted_at_terminal_ = true;
    return signal;
  }
}

bool SignalPolicy::is_repeat(const os::SignalSet::Taken& signal) {
  return repeats_.is_repeat(signal.number, signal.is_from_kernel, os::monotonic_ns());
}

void SignalPolicy::pass_on(const os::SignalSet::Taken& signal) const {
  // A timer that was set before we were executed was meant for what we execute.
  if (!signal.is_from_kernel || signal.is_of_timer()) {
    ::kill(child_->pid(), signal.number);
  } else if (signal.number == SIGHUP) {
    // Where a terminal hangs up the kernel tells the session's leader alone, which we may be.
    ::killpg(::getpgid(child_->pid()), SIGHUP);
  }
}

// A terminal tells all of its foreground group of a new size: pass_on() knows. What the command
// sends to its parent is not for itself: some say so that they are ready (Xorg).
void SignalPolicy::pass_through() const {
  while (const auto signal = signals_->take_of_command()) {
    const bool has_receiver = child_ != nullptr && !child_->has_ended();
    const bool is_of_receiver =
        has_receiver && signal->sender_pid == static_cast<uint32_t>(child_->pid());
    if (has_receiver && !is_of_receiver && !is_own(*signal)) pass_on(*signal);
  }
}

bool SignalPolicy::pass_to_child_alone(const os::SignalSet::Taken& signal) const {
  if (signal.number != SIGQUIT || child_ == nullptr || child_->has_ended()) return false;
  pass_on(signal);
  return true;
}

bool SignalPolicy::is_needless(const os::SignalSet::Taken& signal) const {
  if (!signal.is_of_timer()) return false;
  if (ending_signal_ != 0) return true;
  return child_ != nullptr && (signal.is_of_cpu_limit() || child_->has_ended());
}

void SignalPolicy::before_exec() {
  while (const auto signal = take()) {
    ::kill(child_->pid(), signal->number);
    passed_on_at_ns_ = os::monotonic_ns();
  }
  pass_through();
}

bool SignalPolicy::ends_recording() {
  pass_through();
  while (const auto signal = take()) {
    if (pass_to_child_alone(*signal) || is_repeat(*signal)) continue;
    const bool is_first_for_child =
        child_ != nullptr && !passed_on_at_ns_ && !signal->is_of_cpu_limit();
    if (is_first_for_child || (child_ != nullptr && signal->number == SIGHUP)) {
      pass_on(*signal);
      passed_on_at_ns_ = os::monotonic_ns();
    }
    // Ignored: somebody wants an end, and the command cannot have heard.
    const bool is_ignored =
        !signal->is_from_kernel && signals_->is_ignored_by_children(signal->number);
    if (!is_first_for_child || signal->number == SIGHUP || is_ignored) {
      ending_signal_ = signal->number;
      return true;
    }
  }
  return false;
}

void SignalPolicy::while_finishing() {
  pass_through();
  while (const auto signal = take()) {
    if (is_needless(*signal)) continue;
    if (pass_to_child_alone(*signal) || is_repeat(*signal)) continue;
    if (ending_signal_ != 0) os::die_by_signal(signal->number);
    if (child_ == nullptr) {
      ending_signal_ = signal->number;  // the first one: what was recorded is written all the same
      continue;
    }
    // The command's end was its answer to the first one, or came just before it.
    if (passed_on_at_ns_ && child_->has_ended()) os::die_by_signal(signal->number);
    passed_on_at_ns_ = os::monotonic_ns();
    pass_on(*signal);
  }
}

void SignalPolicy::let_repeats_pass() {
  for (;;) {
    while_finishing();
    const uint64_t left_ns = repeats_.left_ns();
    if (left_ns == 0) return;
    pollfd entry{signals_->fd(), POLLIN, 0};
    const timespec left{0, static_cast<long>(left_ns)};
    ::ppoll(&entry, 1, &left, nullptr);
  }
}

}  // namespace sentry_prof::recorder
