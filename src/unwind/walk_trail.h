// The steps of the walk that is going on, and its meeting with those that the thread's memory has.
#pragma once

#include "unwind/walk_memory.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace sentry_prof::unwind {

// Without memory everything here does nothing. `steps` is the caller's, so that its room is kept
// from walk to walk.
class WalkTrail {
 public:
  WalkTrail(WalkMemory* memory, uint64_t map_version, std::vector<WalkStep>& steps)
      : memory_(map_version == 0 ? nullptr : memory), steps_(steps) {
    if (memory_ == nullptr) return;
    memory_->use_map(map_version);
    untried_ = memory_->steps().size();
  }

  // Begins the walk.
  void restart(bool is_followed) {
    is_followed_ = is_followed && memory_ != nullptr;
    steps_.clear();
  }

  // The walk stands at a frame from which its state alone leads on. What it reads from here to the
  // next frame belongs to this step.
  void enter(const WalkedFrame& frame, const FrameState& state) {
    if (!is_followed_) return;
    if (steps_.size() == 2 * kMaxRememberedSteps) forget_inner_half();
    steps_.push_back({frame, state, {}, {}});
  }

  // The frame that was entered last turns out to be this.
  void restate(const WalkedFrame& frame) {
    if (is_followed_ && !steps_.empty()) steps_.back().frame = frame;
  }

  void read_return_address(uint64_t address, uint64_t value) {
    if (is_followed_ && !steps_.empty()) steps_.back().return_address = {address, value};
  }
  void read_saved_fp(uint64_t address, uint64_t value) {
    if (is_followed_ && !steps_.empty()) steps_.back().saved_fp = {address, value};
  }

  // The step to the next frame takes more than a later walk could compare: nothing so far counts.
  void breaks() { steps_.clear(); }

  // If the frame that was entered last is in the memory, and all words from it outward are as they
  // were: this frame's step and those outside of it, outermost first, if the latter are no more
  // than `max_frames`. Else none.
  std::span<const WalkStep> known_from_here(const StackSnapshot& stack, size_t max_frames) {
    if (!is_followed_ || steps_.empty()) return {};
    const std::vector<WalkStep>& known = memory_->steps();
    const FrameState& state = steps_.back().state;
    while (untried_ > 0 && known[untried_ - 1].state.sp < state.sp) --untried_;
    if (untried_ < 2 || known[untried_ - 1].state != state) return {};  // the root has no rest
    // All words are loaded at once: none waits for the one before, as in a walk from rule to rule.
    size_t still_holding = 0;
    for (size_t i = 0; i < untried_; ++i) still_holding += known[i].still_holds(stack) ? 1 : 0;
    if (still_holding < untried_ || untried_ - 1 > max_frames) {
      untried_ = 0;
      return {};
    }
    kept_ = untried_;
    memory_->restate(kept_ - 1, steps_.back().frame);
    steps_.pop_back();
    return std::span(known).first(untried_);
  }

  // WalkMemory::beyond() the frames that were entered last.
  std::span<const WalkStep> beyond_same_frames(size_t max_frames) const {
    if (!is_followed_) return {};
    return memory_->beyond(steps_, max_frames);
  }

  // Of this walk, innermost first; none if it is not followed.
  std::span<const WalkStep> steps() const { return steps_; }
  bool is_followed() const { return is_followed_; }

  // Of the memory: the steps that the walk took over, outermost first.
  std::span<const WalkStep> kept() const {
    return memory_ == nullptr ? std::span<const WalkStep>()
                              : std::span(memory_->steps()).first(kept_);
  }

 private:
  // They would not be learned.
  void forget_inner_half() {
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(kMaxRememberedSteps));
  }

  WalkMemory* memory_;
  std::vector<WalkStep>& steps_;
  bool is_followed_ = false;
  size_t untried_ = 0;  // steps of the memory that may lie on the way, from the outermost
  size_t kept_ = 0;     // of these, those that do
};

}  // namespace sentry_prof::unwind
