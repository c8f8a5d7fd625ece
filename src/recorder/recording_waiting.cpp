// Samples whose stacks are known later, or not at all: cut ones wait for their thread's next whole
// walk, those whose callers are on another stack until that was looked at often enough.
#include "recorder/recording.h"

namespace sentry_prof::recorder {

// False if it is of no use: the stack is as it will stay, or no other could be told to be the same.
bool Recording::defer(uint64_t time_ns, uint32_t pid, uint32_t chunk_thread,
                      const SampleWalk& walked, const unwind::ModuleMap& modules) {
  const unwind::Walk& walk = walked.walk;
  if (walk.frames_left_out > 0) return false;
  if (walk.end == unwind::WalkEnd::OtherStack) {
    return walked.left_at && walker_.left_stacks().hold({.time_ns = time_ns,
                                                         .chunk_thread = chunk_thread,
                                                         .place = *walked.left_at,
                                                         .frames = frame_buffer_});
  }
  if (walk.end != unwind::WalkEnd::StackTruncated) return false;
  size_t compared = unwind::steps_to_compare(walk.steps, unwind::kFramesInCommon);
  if (compared == 0 && walked.outside_before) {
    compared = unwind::steps_to_compare(walk.steps, unwind::kFramesInCommonOnBothSides);
  }
  if (compared == 0) return false;
  const auto last_steps = walk.steps.last(compared);
  waiting_.add({.time_ns = time_ns,
                .pid = pid,
                .chunk_thread = chunk_thread,
                .map_version = modules.version(),
                .frames = frame_buffer_,
                .last_steps = {last_steps.begin(), last_steps.end()},
                .outside_before = walked.outside_before});
  return true;
}

// A thread's next whole walk, which its memory has learnt, is the last that can tell: frames that
// are not there any more do not come back.
void Recording::settle_waiting(uint32_t chunk_thread, const unwind::WalkMemory& memory,
                               const unwind::ModuleMap& modules) {
  for (WaitingSample& sample : waiting_.take_thread(chunk_thread)) {
    const bool is_whole =
        sample.map_version == modules.version() && go_on_with(sample, memory, modules);
    const auto end = is_whole ? unwind::WalkEnd::Root : unwind::WalkEnd::StackTruncated;
    const auto by = is_whole ? CompletedBy::NextWhole : CompletedBy::Nothing;
    put_into_chunk(sample.time_ns, sample.chunk_thread, {end, by, sample.frames});
  }
}

// False, and nothing done, if the memory's walk did not come through the same frames.
bool Recording::go_on_with(WaitingSample& sample, const unwind::WalkMemory& memory,
                           const unwind::ModuleMap& modules) {
  const size_t room = unwind::kMaxFrames - sample.frames.size();
  auto outside = memory.beyond(sample.last_steps, room);
  if (outside.empty() && sample.outside_before) {
    outside = memory.beyond(sample.last_steps, room, unwind::kFramesInCommonOnBothSides);
    if (unwind::fingerprint_of(outside) != *sample.outside_before) outside = {};
  }
  for (size_t i = outside.size(); i-- > 0;) {
    unwind::WalkedFrame frame = outside[i].frame;
    frame.is_joined = true;
    sample.frames.push_back(key_of(frame, sample.pid, modules));
  }
  return !outside.empty();
}

void Recording::put_cut(const std::vector<WaitingSample>& samples) {
  for (const WaitingSample& sample : samples) {
    put_into_chunk(sample.time_ns, sample.chunk_thread,
                   {unwind::WalkEnd::StackTruncated, CompletedBy::Nothing, sample.frames});
  }
}

void Recording::put_held() {
  for (HeldSample& sample : walker_.left_stacks().take_held()) {
    const auto outside = walker_.left_stacks().believed_at(sample.place, sample.time_ns);
    const bool is_whole =
        !outside.empty() && sample.frames.size() + outside.size() <= unwind::kMaxFrames;
    if (is_whole) {
      const unwind::ModuleMap& modules = processes_.process(sample.place.pid).modules;
      for (const unwind::WalkedFrame& frame : outside) {
        sample.frames.push_back(key_of(frame, sample.place.pid, modules));
      }
    }
    const auto end = is_whole ? unwind::WalkEnd::Root : unwind::WalkEnd::OtherStack;
    const auto by = is_whole ? CompletedBy::LeftStack : CompletedBy::Nothing;
    put_into_chunk(sample.time_ns, sample.chunk_thread, {end, by, sample.frames});
  }
}

}  // namespace sentry_prof::recorder
