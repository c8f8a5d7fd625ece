// What a thread's last whole walk saw. Between two samples of a thread most of its outer frames
// have not moved: the next walk compares the words of the stack that led through them, which can be
// loaded all at once, instead of finding one rule after the other again.
#pragma once

#include "unwind/stack_snapshot.h"
#include "unwind/walked_frame.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::unwind {

// What the step from a frame to its caller rests on, apart from rules and memory.
struct FrameState {
  uint64_t pc = 0;
  uint64_t sp = 0;
  uint64_t fp = 0;
  bool fp_is_known = false;
  bool sp_is_known = true;
  bool came_by_frame_pointer = false;  // somewhere on the way: what is behind may be no frame

  bool operator==(const FrameState&) const = default;
};

// A word of the stack; the default is none.
struct SeenWord {
  uint64_t address = 0;
  uint64_t value = 0;

  bool is_still_in(const StackSnapshot& stack) const {
    uint64_t now = 0;
    return address == 0 || (stack.read_u64({address}, now) && now == value);
  }
};

// A return address's frame, and the words that the step to its caller read.
struct WalkStep {
  WalkedFrame frame;
  FrameState state;
  SeenWord return_address;
  SeenWord saved_fp;

  bool still_holds(const StackSnapshot& stack) const {
    return return_address.is_still_in(stack) && saved_fp.is_still_in(stack);
  }
};

// 640 KiB, for a thread whose stack is that deep: 1 MiB of small frames. A cut stack can be joined
// only where its last frames are remembered, which lie far in.
inline constexpr size_t kMaxRememberedSteps = 8192;
static_assert(sizeof(WalkStep) == 80);

// How many frames at the end of a copy, with different pcs, have to be where they were, for the
// ones outside of them to be taken for what they were. Of stacks of real programs that were joined
// (`scripts/bench joins`) 0.4 % had wrong outer frames where one frame was in common, 8 of 401,000
// where four to seven, 2 of 151,000 where eight or more.
inline constexpr size_t kFramesInCommon = 8;

// How many are enough where the last whole stack before and the next one after are the same outside
// of the copy: of 153,547 that were joined so (`scripts/bench joins`) none had wrong outer frames.
// With one frame in common no real program's had, but 5 of 4,095 of one that is made to deceive.
inline constexpr size_t kFramesInCommonOnBothSides = 2;

// Return addresses of which each counts once: a recursion's are the same whoever called it.
class DistinctValues {
 public:
  // False if it is there already. Not when full.
  bool add(uint64_t value) {
    const auto end = values_.begin() + static_cast<std::ptrdiff_t>(count_);
    if (std::find(values_.begin(), end, value) != end) return false;
    values_[count_++] = value;
    return true;
  }
  size_t count() const { return count_; }
  bool is_full() const { return count_ == values_.size(); }

 private:
  std::array<uint64_t, kFramesInCommon> values_{};
  size_t count_ = 0;
};

// The outermost frames of a walk that reached its root. A walk is a function of the module map, the
// state and the words it reads: one that comes to a remembered state and finds the same words would
// find the same callers. Nothing is guessed. (Code that no file holds may change, but hardly that
// of a frame that stands; where it could not be read, nothing is remembered.)
class WalkMemory {
 public:
  // Forgets everything if it was learnt with another map (ModuleMap::version()).
  void use_map(uint64_t version) {
    if (version == map_version_) return;
    steps_.clear();
    map_version_ = version;
  }

  // Outermost first.
  const std::vector<WalkStep>& steps() const { return steps_; }

  // The frame of a step is found anew, perhaps in another way.
  void restate(size_t step, const WalkedFrame& frame) { steps_[step].frame = frame; }

  // `last_steps` are those of a walk that got no farther, innermost first. If the outermost of them
  // were in this memory's walk, too, at the same places and with the same frame pointers, and these
  // have `frames_in_common` different pcs: the steps outside of them here, outermost first, if they
  // are no more than `max_frames`. Else none.
  std::span<const WalkStep> beyond(std::span<const WalkStep> last_steps, size_t max_frames,
                                   size_t frames_in_common = kFramesInCommon) const;

  // The walk reached its root by `inner`, innermost first, and behind it by `kept`, outermost
  // first: the first of these steps, or of another memory's.
  void learn(std::span<const WalkStep> kept, const std::vector<WalkStep>& inner);

  // When the steps were on the stack; the one who lets it learn sets it.
  uint64_t seen_ns() const { return seen_ns_; }
  void set_seen(uint64_t time_ns) { seen_ns_ = time_ns; }

 private:
  uint64_t map_version_ = 0;
  uint64_t seen_ns_ = 0;
  std::vector<WalkStep> steps_;
};

// How many of these, counted from the outermost, have `frames_in_common` different pcs, which is no
// more than kFramesInCommon; none if there are fewer. `steps` innermost first.
size_t steps_to_compare(std::span<const WalkStep> steps, size_t frames_in_common);

// One number for what frames these are, and where: another one for others, but for one in 2^64.
uint64_t fingerprint_of(std::span<const WalkStep> steps);

// The memories of as many threads as are likely to run at a time: 200 KiB for stacks of 40 frames,
// 40 MiB if all of them are as deep as can be. Of two threads that share a place the later one has
// it.
class WalkMemories {
 public:
  WalkMemory& of(uint32_t pid, uint32_t tid);

 private:
  struct Place {
    uint64_t thread = 0;
    WalkMemory memory;
  };
  std::array<Place, 64> places_;
};

}  // namespace sentry_prof::unwind
