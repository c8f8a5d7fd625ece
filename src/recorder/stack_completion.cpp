#include "recorder/stack_completion.h"

namespace sentry_prof::recorder {

using unwind::Walk;
using unwind::WalkEnd;
using unwind::WalkMemory;

CompletedStack StackCompletion::complete(const CutStack& cut, WalkMemory& memory) {
  const RuntimeAddress above_copy{cut.begin.value + cut.copy.size()};
  // Of a process that cannot be asked all deep stacks are cut, and the last whole one may be old.
  if (!live_.begin({cut.pid, cut.time_ns, above_copy}, cut.walk)) return nothing_more(cut);
  Walk walk = read_on(cut, memory);
  if (cut.copy_is_short && live_.pieces().empty()) return nothing_more(cut);
  const bool is_long_enough = walk.is_complete() || walk.end == WalkEnd::FrameLimit;
  if (is_long_enough && (walk.agrees_with_memory || live_.still_stands())) {
    if (walk.is_complete()) unwinder_.learn(memory, cut.modules);
    return {walk, CompletedBy::LiveFrames};
  }
  if (walk.is_complete()) {
    walk = compare_with_last_look(cut, memory);
    if (walk.agrees_with_memory) return {walk, CompletedBy::LiveFrames};
  }
  walk = unwinder_.join(cut.registers, {cut.begin, cut.copy}, cut.modules, memory);
  return {walk, walk.is_complete() ? CompletedBy::JoinedFrames : CompletedBy::Nothing};
}

CompletedStack StackCompletion::nothing_more(const CutStack& cut) const {
  Walk walk = cut.walk;
  if (cut.copy_is_short) walk.end = WalkEnd::BadMemory;
  return {walk};
}

Walk StackCompletion::read_on(const CutStack& cut, WalkMemory& memory) {
  Walk walk = cut.walk;
  while (walk.end == WalkEnd::StackTruncated && live_.grow(walk.missing))
    walk = walk_live(cut, memory);
  return walk;
}

Walk StackCompletion::walk_live(const CutStack& cut, WalkMemory& memory) {
  return unwinder_.walk_live(cut.registers, {cut.begin, cut.copy, true, live_.pieces()},
                             cut.modules, memory);
}

Walk StackCompletion::compare_with_last_look(const CutStack& cut, WalkMemory& memory) {
  WalkMemory& look = looks_.of(cut.pid, cut.tid);
  Walk walk = walk_live(cut, look);
  if (!walk.agrees_with_memory) {
    unwinder_.learn(look, cut.modules);
    look.set_seen(live_.read_time_ns());
    return walk;
  }
  // What was first seen after the sample proves nothing.
  walk.agrees_with_memory = look.seen_ns() <= cut.time_ns;
  if (walk.agrees_with_memory) unwinder_.learn(memory, cut.modules);
  return walk;
}

}  // namespace sentry_prof::recorder
