#include "recorder/left_stacks.h"

#include <algorithm>
#include <array>

namespace sentry_prof::recorder {
namespace {

using unwind::Walk;
using unwind::WalkedFrame;
using unwind::WalkEnd;

// Most goroutines end within so much.
constexpr size_t kFirstRead_bytes = 4u << 10;
constexpr size_t kReadGrowth = 8;

using Frames = std::span<const WalkedFrame>;

bool is_same(Frames a, Frames b) {
  return std::ranges::equal(a, b, [](const WalkedFrame& x, const WalkedFrame& y) {
    return x.image == y.image && x.pc == y.pc;
  });
}

// The kernel's chain lacks the innermost frame up to Go 1.20: the function that changes stacks
// keeps none.
bool is_same_but_for_innermost(Frames a, Frames b) {
  if (a.empty() || b.empty()) return false;
  return is_same(a, b) || is_same(a.subspan(1), b) || is_same(a, b.subspan(1));
}

}  // namespace

WholeWalk LeftStacks::complete(const Walk& walk, uint32_t pid, uint64_t time_ns,
                               const unwind::ModuleMap& modules) {
  const auto left = unwind::left_stack_of(walk.frames, walk.left_frame_pointer, modules);
  if (!left || walk.frames_left_out > 0 || read_ == nullptr) return {walk, std::nullopt};
  const LeftPlace place{pid, modules.version(), *left};
  frames_.assign(walk.frames.begin(), walk.frames.end());  // the unwinder walks again
  WholeWalk result{walk, std::nullopt};
  if (look_at(place, time_ns, modules)) result.seen_at = place;
  result.walk.steps = {};
  const Frames outside = result.seen_at ? believed_at(place, time_ns) : Frames();
  if (!outside.empty() && frames_.size() + outside.size() <= unwind::kMaxFrames) {
    frames_.insert(frames_.end(), outside.begin(), outside.end());
    result.walk.end = WalkEnd::Root;
    result.walk.is_followed = false;
  }
  result.walk.frames = frames_;
  return result;
}

LeftStacks::Key LeftStacks::key_of(const LeftPlace& place) {
  return {place.pid, place.left.frame_pointer, place.left.callee.value};
}

Frames LeftStacks::believed_at(const LeftPlace& place, uint64_t time_ns) const {
  const auto found = known_.find(key_of(place));
  if (found == known_.end() || found->second.map_version != place.map_version) return {};
  const Known& known = found->second;
  const uint32_t wanted = known.alike_since_ns == 0 ? kTimesAlike : kTimesAlikeAgain;
  const bool is_believed = known.times_alike >= wanted && known.alike_since_ns <= time_ns;
  return is_believed ? std::span(known.frames) : Frames();
}

// Looks, unless somebody did since. Whether the first look after a sample of that time found that
// the stack was left there: where it was not, the sample's caller may be one that looks never see,
// which calls and goes on to sleep.
bool LeftStacks::look_at(const LeftPlace& place, uint64_t time_ns,
                         const unwind::ModuleMap& modules) {
  Known& known = known_at(place);
  if (known.last_look_ns >= time_ns) return known.is_seen;
  if (!looks_.take(time_ns)) return false;
  const auto [walk, is_of_callee] = walk_now(place, time_ns, modules, known.last_look_ns);
  const Frames frames = walk.frames;
  known.is_seen = !frames.empty();
  if (!known.is_seen || !is_of_callee) return known.is_seen;
  known.hear_of(frames, known.last_look_ns);
  known.frames.assign(frames.begin(), frames.end());
  ++known.times_alike;
  return true;
}

// Of a process that maps something, it is still known that its callers changed.
LeftStacks::Known& LeftStacks::known_at(const LeftPlace& place) {
  const Key key = key_of(place);
  if (known_.size() >= kMaxLeftStacks && !known_.contains(key)) known_.clear();
  Known& known = known_[key];
  if (known.map_version != place.map_version) {
    known = {.map_version = place.map_version, .alike_since_ns = known.alike_since_ns};
  }
  return known;
}

// The chain may tell of a moment before the last look.
void LeftStacks::Known::hear_of(Frames callers, uint64_t time_ns) {
  if (!frames.empty() && !is_same_but_for_innermost(callers, frames)) {
    alike_since_ns = std::max(time_ns, last_look_ns);
    times_alike = 0;
    frames.clear();
  }
  if (frames.empty()) frames.assign(callers.begin(), callers.end());
}

void LeftStacks::learn(const Walk& whole, size_t copied_frames, uint32_t pid, uint64_t time_ns,
                       const unwind::ModuleMap& modules) {
  const auto left =
      unwind::left_stack_of(whole.frames.first(copied_frames), whole.left_frame_pointer, modules);
  if (!left || read_ == nullptr || whole.frames.size() - copied_frames > kMaxLeftFrames) return;
  known_at({pid, modules.version(), *left}).hear_of(whole.frames.subspan(copied_frames), time_ns);
}

unwind::LeftStackWalk LeftStacks::walk_now(const LeftPlace& place, uint64_t time_ns,
                                           const unwind::ModuleMap& modules,
                                           uint64_t& read_time_ns) {
  const RuntimeAddress begin{place.left.frame_pointer - unwind::kLeftFrameReach_bytes};
  for (size_t size = kFirstRead_bytes; size <= kMaxLeftStack_bytes; size *= kReadGrowth) {
    buffer_.resize(std::max(buffer_.size(), size));
    os::MemoryRange stack{begin.value, std::span(buffer_).first(size)};
    read_time_ns = read_({place.pid, time_ns}, std::span(&stack, 1));
    const unwind::StackSnapshot now(begin, stack.out.first(stack.got_bytes));
    const unwind::LeftStackWalk left = unwinder_.walk_left_stack(place.left, now, modules);
    const bool is_all = left.walk.end != WalkEnd::StackTruncated || stack.got_bytes < size;
    if (is_all && left.walk.frames.size() <= kMaxLeftFrames) return left;
    if (is_all) return {};
  }
  return {};
}

bool LeftStacks::hold(HeldSample sample) {
  const size_t bytes = sizeof(sample) + sample.frames.size() * sizeof(sample.frames[0]);
  if (held_bytes_ + bytes > kMaxHeld_bytes) return false;
  held_bytes_ += bytes;
  held_.push_back(std::move(sample));
  return true;
}

std::vector<HeldSample> LeftStacks::take_held() {
  held_bytes_ = 0;
  return std::exchange(held_, {});
}

}  // namespace sentry_prof::recorder
