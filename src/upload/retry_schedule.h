// How long to wait before each further try: exponential, with jitter, bounded.
#pragma once

#include "base/time_units.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace sentry_prof::upload {

struct RetryPolicy {
  uint32_t max_retries = 5;  // tries after the first one
  uint64_t first_wait_ns = kNsPerSecond;
  uint64_t longest_wait_ns = 60'000'000'000;
};

// Uniform 64-bit numbers. Without jitter, many clients that a server lost at one moment would all
// come back at one moment.
using RandomSource = std::function<uint64_t()>;

// The waits of one envelope: the n-th lies between half of first_wait * 2^n and all of it.
class RetrySchedule {
 public:
  RetrySchedule(const RetryPolicy& policy, RandomSource random);
  // Nothing once all retries are used up.
  std::optional<uint64_t> next_wait_ns();

 private:
  RetryPolicy policy_;
  RandomSource random_;
  uint32_t used_ = 0;
  uint64_t ceiling_ns_;
};

}  // namespace sentry_prof::upload
