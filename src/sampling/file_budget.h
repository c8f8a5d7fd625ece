// How many events the limit of open files allows.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sentry_prof::sampling {

class FileBudget {
 public:
  // Left to the rest of the program: output, files of the target, temporaries. Of a small limit a
  // quarter.
  static constexpr uint64_t kReserved = 128;

  // `limit`: RLIMIT_NOFILE. `open`: descriptors that are open by now.
  FileBudget(uint64_t limit, uint64_t open) : limit_(limit), open_(open) {}

  uint64_t limit() const { return limit_; }
  uint64_t events() const {
    const uint64_t taken = open_ + std::min(kReserved, limit_ / 4);
    return limit_ - std::min(limit_, taken);
  }
  // What the limit would have to be for so many; one at least.
  uint64_t limit_for(uint64_t events) const {
    const uint64_t needed = open_ + events;
    return needed + std::min(kReserved, (needed - 1) / 3);
  }

 private:
  uint64_t limit_;
  uint64_t open_;
};

}  // namespace sentry_prof::sampling
