// Samples of cut stacks that wait for their thread's next whole walk, which may have come through
// the same frames, too.
#pragma once

#include "profile/chunk_builder.h"
#include "unwind/walk_memory.h"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace sentry_prof::recorder {

// A stack that ended at the end of its copy, and may be gone on with.
struct WaitingSample {
  uint64_t time_ns = 0;
  uint32_t pid = 0;
  uint32_t chunk_thread = 0;
  uint64_t map_version = 0;  // ModuleMap::version()
  std::vector<profile::FrameKey> frames;
  std::vector<unwind::WalkStep> last_steps;  // innermost first, no more than have to be the same
};

// In the order in which they came, which may differ a little from that of their times. Bounded by
// kMaxWaitingFrames: the oldest have to go when more come.
class WaitingSamples {
 public:
  // Whether a stack that ends with `steps`, innermost first, has enough of them to be told by.
  static bool can_wait(std::span<const unwind::WalkStep> steps) {
    return unwind::steps_to_compare(steps) > 0;
  }
  // `sample` without its last_steps, which are taken from `steps`. can_wait(steps).
  void add(WaitingSample sample, std::span<const unwind::WalkStep> steps);

  // Removes and returns all of a thread.
  std::vector<WaitingSample> take_thread(uint32_t chunk_thread);
  // Removes and returns those before `time_ns`, and such as there is no room for.
  std::vector<WaitingSample> take_overdue(uint64_t time_ns);
  std::vector<WaitingSample> take_all() { return take_overdue(UINT64_MAX); }

  bool empty() const { return samples_.empty(); }

 private:
  std::deque<WaitingSample> samples_;
  size_t frames_ = 0;
};

// 1 MiB: two threads with stacks of 128 frames in kMaxJoinAge_ns at 997 Hz.
inline constexpr size_t kMaxWaitingFrames = 65'536;

}  // namespace sentry_prof::recorder
