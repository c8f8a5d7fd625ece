// A limit to how much of our time others may have us wait.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sentry_prof::os {

// Waiting may take one `share`-th of all time. What was not spent is saved up to `most_ns`, which
// is there at first. Without it, who keeps us waiting again and again would have us do nothing
// else.
class Patience {
 public:
  Patience(uint64_t share, uint64_t most_ns)
      : share_(share), most_ns_(most_ns), left_ns_(most_ns) {}

  // Whether there is as much as `wait_ns`. Times are of one clock, and do not go back.
  bool is_enough_for(uint64_t wait_ns, uint64_t now_ns) {
    left_ns_ = std::min(most_ns_, left_ns_ + (now_ns - time_ns_) / share_);
    time_ns_ = now_ns;
    return left_ns_ >= wait_ns;
  }
  void spend(uint64_t waited_ns) { left_ns_ -= std::min(left_ns_, waited_ns); }

 private:
  uint64_t share_;
  uint64_t most_ns_;
  uint64_t left_ns_;
  uint64_t time_ns_ = 0;
};

}  // namespace sentry_prof::os
