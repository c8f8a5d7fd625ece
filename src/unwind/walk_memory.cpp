#include "unwind/walk_memory.h"

#include <algorithm>

namespace sentry_prof::unwind {

void WalkMemory::learn(std::span<const WalkStep> kept, const std::vector<WalkStep>& inner) {
  if (kept.data() == steps_.data()) {
    steps_.resize(kept.size());
  } else {
    steps_.assign(kept.begin(), kept.end());
  }
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
