#include "unwind/walk_memory.h"

#include <algorithm>

namespace sentry_prof::unwind {

void WalkMemory::learn(size_t kept, const std::vector<WalkStep>& inner) {
  steps_.resize(std::min(kept, steps_.size()));
  const size_t room = kMaxRememberedSteps - std::min(steps_.size(), kMaxRememberedSteps);
  const auto outermost = inner.rbegin();
  steps_.insert(steps_.end(), outermost,
                outermost + static_cast<std::ptrdiff_t>(std::min(room, inner.size())));
}

WalkMemory& WalkMemories::of(uint32_t pid, uint32_t tid) {
  const uint64_t thread = uint64_t{pid} << 32 | tid;
  Place& place = places_[tid % places_.size()];
  if (place.thread != thread) {
    place.thread = thread;
    place.memory.use_map(0);
  }
  return place.memory;
}

}  // namespace sentry_prof::unwind
