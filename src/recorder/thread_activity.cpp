#include "recorder/thread_activity.h"

#include <utility>

namespace sentry_prof::recorder {

std::optional<uint64_t> ThreadActivity::close_absence(uint64_t time_ns, uint64_t period_ns) {
  const uint64_t left_ns = off_since_ns_;
  if (left_ns == 0 || !has_open_stack_ || time_ns < left_ns) return std::nullopt;
  const uint64_t absence_ns = time_ns - left_ns;
  away_ns_ += absence_ns;
  const bool is_long = absence_ns > 2 * period_ns;
  if (!is_long && (away_ns_ <= 2 * period_ns || left_behind_ns_ == 0)) return std::nullopt;
  has_open_stack_ = false;
  return is_long ? left_ns : left_behind_ns_;
}

std::optional<uint64_t> ThreadActivity::on_switch_in(uint64_t time_ns, uint64_t period_ns) {
  const auto marker = close_absence(time_ns, period_ns);
  off_since_ns_ = 0;
  if (on_since_ns_ == 0) on_since_ns_ = time_ns;
  return marker;
}

std::optional<uint64_t> ThreadActivity::on_sample(uint64_t time_ns, uint64_t period_ns) {
  const auto marker = on_switch_in(time_ns, period_ns);
  has_open_stack_ = true;
  sample_end_ns_ = time_ns + period_ns;
  away_ns_ = 0;
  left_behind_ns_ = 0;
  return marker;
}

void ThreadActivity::leave_cpu(uint64_t time_ns) {
  if (on_since_ns_ != 0 && time_ns > on_since_ns_) on_cpu_ns_ += time_ns - on_since_ns_;
  on_since_ns_ = 0;
}

void ThreadActivity::on_switch_out(uint64_t time_ns) {
  leave_cpu(time_ns);
  off_since_ns_ = time_ns;
  if (left_behind_ns_ == 0 && time_ns >= sample_end_ns_) left_behind_ns_ = time_ns;
}

std::optional<uint64_t> ThreadActivity::on_exit(uint64_t time_ns) {
  // The kernel takes the events off an exiting task before its last switch: nothing follows.
  leave_cpu(time_ns);
  if (!std::exchange(has_open_stack_, false)) return std::nullopt;
  return off_since_ns_ != 0 ? off_since_ns_ : time_ns;
}

std::optional<uint64_t> ThreadActivity::on_chunk_end(uint64_t time_ns, uint64_t period_ns) {
  const auto marker = close_absence(time_ns, period_ns);
  has_open_stack_ = false;
  return marker;
}

}  // namespace sentry_prof::recorder
