#include "upload/retry_schedule.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::upload {

RetrySchedule::RetrySchedule(const RetryPolicy& policy, RandomSource random)
    : policy_(policy),
      random_(std::move(random)),
      ceiling_ns_(std::min(policy.first_wait_ns, policy.longest_wait_ns)) {}

std::optional<uint64_t> RetrySchedule::next_wait_ns() {
  if (used_ == policy_.max_retries) return std::nullopt;
  ++used_;
  const uint64_t half = ceiling_ns_ / 2;
  const uint64_t wait_ns = half + random_() % (ceiling_ns_ - half + 1);
  const bool would_pass_limit = ceiling_ns_ > policy_.longest_wait_ns / 2;
  ceiling_ns_ = would_pass_limit ? policy_.longest_wait_ns : ceiling_ns_ * 2;
  return wait_ns;
}

}  // namespace sentry_prof::upload
