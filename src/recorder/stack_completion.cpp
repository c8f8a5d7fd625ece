#include "recorder/stack_completion.h"

#include <algorithm>

namespace sentry_prof::recorder {

using Behind = unwind::StackSnapshot::Behind;

using unwind::Walk;
using unwind::WalkEnd;
using unwind::WalkMemory;

CompletedStack StackCompletion::complete(const CutStack& cut, WalkMemory& memory) {
  const RuntimeAddress end{cut.begin.value + cut.copy.size()};
  bool may_join = cut.time_ns - memory.seen_ns() <= kMaxJoinAge_ns;
  if (live_.begin({{cut.pid, cut.tid}, cut.time_ns, end, cut.copy.size()}, cut.walk.steps)) {
    WalkMemory& look = looks_.of(cut.pid, cut.tid);
    const bool look_is_last = look.seen_ns() > memory.seen_ns() && look.seen_ns() <= cut.time_ns;
    const auto walk = complete_live(cut, look_is_last ? look : memory, look, memory);
    if (walk) return {*walk, CompletedBy::LiveStack};
    // A look had its inner part from an earlier copy, and was not believed: it is no whole stack.
    may_join = may_join && !look_is_last;
  }
  if (may_join) {
    const Walk walk = unwinder_.join(cut.registers, {cut.begin, cut.copy}, cut.modules, memory);
    if (walk.is_complete()) return {walk, CompletedBy::LastWhole};
  }
  return nothing_more(cut, memory, may_join);
}

// None if what is read is not believed; then it is kept as a look.
std::optional<Walk> StackCompletion::complete_live(const CutStack& cut, WalkMemory& before,
                                                   WalkMemory& look, WalkMemory& memory) {
  const size_t copied_frames = cut.walk.frames_walked();
  const Walk walk = read_on(cut, before, copied_frames);
  if (walk.end == WalkEnd::FrameLimit && live_.still_stands()) return walk;
  if (!walk.is_complete()) return std::nullopt;
  const size_t live_frames = walk.frames_walked() - std::min(walk.frames_walked(), copied_frames);
  const bool was_same_before = unwinder_.ends_as(before, live_frames);
  if ((was_same_before && live_.may_stand()) || live_.still_stands()) {
    unwinder_.learn(memory, cut.modules);
    if (walk.is_followed) memory.set_seen(cut.time_ns);
    return walk;
  }
  if (walk.is_followed) take_look(cut, look, live_frames);
  return std::nullopt;
}

Walk StackCompletion::read_on(const CutStack& cut, WalkMemory& before, size_t copied_frames) {
  Walk walk = cut.walk;
  const Behind behind = cut.copy_is_short ? Behind::Unknown : Behind::More;
  while (walk.end == WalkEnd::StackTruncated && live_.grow(walk.missing)) {
    const uint64_t remembered = unwinder_.stats().remembered_frames;
    walk = unwinder_.walk_live(cut.registers, {cut.begin, cut.copy, behind, live_.pieces()},
                               cut.modules, before, copied_frames);
    live_.charge_walk(walk.frames_walked() - (unwinder_.stats().remembered_frames - remembered));
  }
  return walk;
}

// All samples of a ring are looked at in one go. What was first seen after a sample says nothing of
// it, but for later ones it counts from then on.
void StackCompletion::take_look(const CutStack& cut, WalkMemory& look, size_t live_frames) {
  if (look.seen_ns() > cut.time_ns && unwinder_.ends_as(look, live_frames)) return;
  unwinder_.learn(look, cut.modules);
  look.set_seen(live_.read_time_ns());
}

// The walk over what was copied, and what is said of its end.
CompletedStack StackCompletion::nothing_more(const CutStack& cut, WalkMemory& memory,
                                             bool may_join) {
  const bool has_more = !cut.copy_is_short || live_.goes_on();
  const Behind behind = has_more ? Behind::More : Behind::Nothing;
  CompletedStack result{
      unwinder_.walk(cut.registers, {cut.begin, cut.copy, behind}, cut.modules, &memory)};
  if (!may_join) return result;
  const auto outside =
      memory.beyond(result.walk.steps, unwind::kMaxFrames, unwind::kFramesInCommonOnBothSides);
  if (!outside.empty()) result.outside_before = unwind::fingerprint_of(outside);
  return result;
}

}  // namespace sentry_prof::recorder
