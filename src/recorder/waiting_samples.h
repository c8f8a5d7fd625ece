// Samples of cut stacks that wait for their thread's next whole walk, which may have come through
// the same frames, too.
#pragma once

#include "profile/chunk_builder.h"
#include "unwind/walk_memory.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace sentry_prof::recorder {

// What waiting samples may take: those of two threads with stacks of 400 frames in kMaxJoinAge_ns
// at 997 Hz.
inline constexpr size_t kMaxWaiting_bytes = 4u << 20;

// A stack that ended at the end of its copy, and may be gone on with.
struct WaitingSample {
  uint64_t time_ns = 0;
  uint32_t pid = 0;
  uint32_t chunk_thread = 0;
  uint64_t map_version = 0;  // ModuleMap::version()
  std::vector<profile::FrameKey> frames;
  std::vector<unwind::WalkStep> last_steps;  // for WalkMemory::beyond()
  std::optional<uint64_t> outside_before;    // CompletedStack::outside_before

  size_t size_bytes() const {
    return sizeof(*this) + frames.size() * sizeof(frames[0]) +
           last_steps.size() * sizeof(last_steps[0]);
  }
};

// In the order in which they came, which may differ a little from that of their times.
class WaitingSamples {
 public:
  void add(WaitingSample sample);

  // Removes and returns all of a thread.
  std::vector<WaitingSample> take_thread(uint32_t chunk_thread);
  // Removes and returns those before `time_ns`, and the oldest while there are more than
  // kMaxWaiting_bytes of them.
  std::vector<WaitingSample> take_overdue(uint64_t time_ns);
  std::vector<WaitingSample> take_all() { return take_overdue(UINT64_MAX); }

  bool empty() const { return samples_.empty(); }

 private:
  std::deque<WaitingSample> samples_;
  size_t size_bytes_ = 0;
};

}  // namespace sentry_prof::recorder
