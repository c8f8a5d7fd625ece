// Completing stacks that are deeper than the kernel's copy of them: where the missing outer frames
// come from, and when they are believed.
#pragma once

#include "recorder/live_stack.h"
#include "unwind/walk.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::recorder {

// A cut stack may be joined with a whole one of its thread that was taken at most this long before
// or after it: 256 samples at 997 Hz, for which docs/fidelity.md has how often that was right.
inline constexpr uint64_t kMaxJoinAge_ns = 250'000'000;

// A walk that stopped where the copy of the stack ends, and the sample that it was made for.
struct CutStack {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t time_ns = 0;
  const unwind::Registers& registers;
  const unwind::ModuleMap& modules;
  RuntimeAddress begin;  // of the copy: the stack pointer
  Bytes copy;
  bool copy_is_short = false;  // it has less than was asked for
  unwind::Walk walk;
};

// What the frames beyond a copy of a stack, or on another one, come from.
enum class CompletedBy : uint8_t {
  Nothing,
  OuterStack,  // what was copied beside the record (SampleEvent::outer_stack)
  LiveStack,   // read from the process
  LeftStack,   // likewise, of the stack that was left: LeftStacks
  LastWhole,   // the thread's last whole walk (Unwinder::join())
  NextWhole,   // the thread's next one (WaitingSamples)
};

struct CompletedStack {
  unwind::Walk walk;  // borrowed from the Unwinder
  CompletedBy by = CompletedBy::Nothing;
  // Of a stack that nothing completed, if the thread's last whole walk went through the last
  // kFramesInCommonOnBothSides frames of the copy: unwind::fingerprint_of() the frames which that
  // walk had outside of it. A later whole walk with the same outside completes the stack.
  std::optional<uint64_t> outside_before{};
};

// What is read of a process after a sample may be another stack by then. It is believed
//   if the last frames of the copy still are where they were (LiveStack::still_stands()), or
//   if nothing speaks against it (may_stand()), and all frames outside of the copy were the same
//   when last something was known of them before the sample, too: by the thread's last whole walk,
//   or by a look at its memory since.
// Neither is a proof: what is the same before and after may have been another in between.
// docs/fidelity.md has how often that was so.
class StackCompletion {
 public:
  // `read` may be empty: there are no live frames.
  StackCompletion(unwind::Unwinder& unwinder, ReadMemory read)
      : unwinder_(unwinder), live_(std::move(read)) {}

  // `memory` is the thread's, with the time of what it saw; it learns what was completed by live
  // frames. A copy is short where the stack's memory ends, and before a page that is not present
  // (perf_output_sample_ustack() may not fault): one of a large frame that was never touched, or
  // one that was swapped out. If nothing can be read behind it, it is taken for the former.
  CompletedStack complete(const CutStack& cut, unwind::WalkMemory& memory);
  // To be called behind each drain of the rings: what was read for one of its samples serves the
  // others, and is forgotten now.
  void end_batch() { live_.end_batch(); }

 private:
  std::optional<unwind::Walk> complete_live(const CutStack& cut, unwind::WalkMemory& before,
                                            unwind::WalkMemory& look, unwind::WalkMemory& memory);
  unwind::Walk read_on(const CutStack& cut, unwind::WalkMemory& before, size_t copied_frames);
  void take_look(const CutStack& cut, unwind::WalkMemory& look, size_t live_frames);
  CompletedStack nothing_more(const CutStack& cut, unwind::WalkMemory& memory, bool may_join);

  unwind::Unwinder& unwinder_;
  LiveStack live_;
  unwind::WalkMemories looks_;  // what was not believed of the sample that it was read for
};

}  // namespace sentry_prof::recorder
