#include "unwind/walk_memory.h"

#include "base/hash.h"

#include <algorithm>
#include <bit>

namespace sentry_prof::unwind {

std::span<const WalkStep> WalkMemory::beyond(std::span<const WalkStep> last_steps,
                                             size_t max_frames, size_t frames_in_common) const {
  const size_t compared = steps_to_compare(last_steps, frames_in_common);
  if (compared == 0) return {};
  const auto same = std::ranges::find(steps_, last_steps.back().state, &WalkStep::state);
  const auto outside = static_cast<size_t>(same - steps_.begin());
  if (outside > max_frames || steps_.size() - outside < compared) return {};
  const auto is_same = [](const WalkStep& one, const WalkStep& other) {
    return one.state == other.state;
  };
  const auto outermost = last_steps.rbegin();
  if (!std::equal(outermost, outermost + static_cast<std::ptrdiff_t>(compared), same, is_same)) {
    return {};
  }
  return std::span(steps_).first(outside);
}

size_t steps_to_compare(std::span<const WalkStep> steps, size_t frames_in_common) {
  DistinctValues pcs;
  for (size_t i = steps.size(); i-- > 0;) {
    if (pcs.add(steps[i].state.pc) && pcs.count() == frames_in_common) return steps.size() - i;
  }
  return 0;
}

uint64_t fingerprint_of(std::span<const WalkStep> steps) {
  uint64_t fingerprint = steps.size();
  for (const WalkStep& step : steps) {
    for (const uint64_t value : {step.state.pc, step.state.sp, step.state.fp}) {
      fingerprint = spread_bits(std::rotl(fingerprint, 29) ^ value);
    }
  }
  return fingerprint;
}

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
    place.memory.set_seen(0);
  }
  return place.memory;
}

}  // namespace sentry_prof::unwind
