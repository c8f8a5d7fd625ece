#include "recorder/thread_activity.h"

#include <utility>

namespace sentry_prof::recorder {

std::optional<uint64_t> ThreadActivity::close_absence(uint64_t time_ns, uint64_t threshold_ns) {
  const uint64_t left_ns = off_since_ns_;
  if (left_ns == 0 || !has_open_stack_ || time_ns < left_ns || time_ns - left_ns <= threshold_ns) {
    return std::nullopt;
  }
  has_open_stack_ = false;
  return left_ns;
}

std::optional<uint64_t> ThreadActivity::on_switch_in(uint64_t time_ns, uint64_t threshold_ns) {
  const auto marker = close_absence(time_ns, threshold_ns);
  off_since_ns_ = 0;
  if (on_since_ns_ == 0) on_since_ns_ = time_ns;
  return marker;
}

std::optional<uint64_t> ThreadActivity::on_sample(uint64_t time_ns, uint64_t threshold_ns) {
  const auto marker = on_switch_in(time_ns, threshold_ns);
  has_open_stack_ = true;
  return marker;
}

void ThreadActivity::leave_cpu(uint64_t time_ns) {
  if (on_since_ns_ != 0 && time_ns > on_since_ns_) on_cpu_ns_ += time_ns - on_since_ns_;
  on_since_ns_ = 0;
}

void ThreadActivity::on_switch_out(uint64_t time_ns) {
  leave_cpu(time_ns);
  off_since_ns_ = time_ns;
}

std::optional<uint64_t> ThreadActivity::on_exit(uint64_t time_ns) {
  // The kernel takes the events off an exiting task before its last switch: nothing follows.
  leave_cpu(time_ns);
  if (!std::exchange(has_open_stack_, false)) return std::nullopt;
  return off_since_ns_ != 0 ? off_since_ns_ : time_ns;
}

std::optional<uint64_t> ThreadActivity::on_chunk_end(uint64_t time_ns, uint64_t threshold_ns) {
  const auto marker = close_absence(time_ns, threshold_ns);
  has_open_stack_ = false;
  return marker;
}

}  // namespace sentry_prof::recorder
