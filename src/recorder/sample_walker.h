// From a sample to its frames: by what the kernel copied, and where that is not all, by what the
// process's memory and the thread's other walks tell.
#pragma once

#include "recorder/code_in_memory.h"
#include "recorder/copied_code.h"
#include "recorder/deep_threads.h"
#include "recorder/left_stacks.h"
#include "recorder/stack_completion.h"
#include "sampling/event.h"
#include "target/process_table.h"
#include "unwind/walk.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace sentry_prof::recorder {

// What the walk of a sample came to. It may be done again: nothing of it is counted yet.
struct SampleWalk {
  unwind::Walk walk;  // borrowed from the walker, until its next walk
  CompletedBy by = CompletedBy::Nothing;
  bool was_cut = false;             // the stack was deeper than its copy, completed or not
  bool misses_outer_stack = false;  // its thread was followed, and what was copied did not do
  // WholeWalk::seen_at of a stack that was left, CompletedStack::outside_before of one that was
  // cut.
  std::optional<LeftPlace> left_at{};
  std::optional<uint64_t> outside_before{};
};

struct SampleWalkerOptions {
  uint64_t register_mask = 0;  // SamplerSetup::register_mask
  // As RecordingOptions has them.
  ReadMemory read_memory;
  FollowOuterStack follow_outer_stack;
  std::function<uint64_t()> now_ns;
};

// Of the recording thread. Remembers of threads, processes and stacks what the next walks go by.
class SampleWalker {
 public:
  explicit SampleWalker(SampleWalkerOptions options);

  // Of a sample with registers of 64 bits.
  SampleWalk walk(uint64_t time_ns, const sampling::SampleEvent& sample,
                  const unwind::ModuleMap& modules);
  // One of the process's possible code that a frame of the walk lies in, and that is proven by
  // what its memory has: the stack has to be walked again, by that image's unwind tables. Null:
  // none is.
  const unwind::Module* find_copied_code(const target::Process& process, const unwind::Walk& walk,
                                         uint64_t time_ns);

  // The interrupted pc.
  uint64_t pc_of(const sampling::SampleEvent& sample) const;
  // What the thread's last whole walk came through.
  const unwind::WalkMemory& memory_of(uint32_t pid, uint32_t tid) { return memories_.of(pid, tid); }
  LeftStacks& left_stacks() { return left_stacks_; }

  // All samples of a drain were walked: what is read from now on may be of later.
  void end_batch() { completion_.end_batch(); }
  // Another program runs in the process now, or none.
  void forget_code(uint32_t pid);
  void forget_deep_process(uint32_t pid) { deep_threads_.forget_process(pid); }
  void forget_deep_thread(uint32_t tid) { deep_threads_.forget_thread(tid); }

  const unwind::UnwinderStats& unwinder_stats() const { return unwinder_.stats(); }
  uint64_t code_pages_not_read() const { return code_in_memory_.pages_not_read(); }
  uint64_t unwind_ns() const { return unwind_ns_; }  // in walk()

 private:
  // What the walks over a sample share.
  struct SampledStack {
    uint64_t time_ns;
    const sampling::SampleEvent& sample;
    const unwind::ModuleMap& modules;
    const unwind::Registers& registers;
    unwind::StackSnapshot record;  // as much as that holds
    unwind::WalkMemory& memory;    // of its thread
  };

  SampleWalk walk_copied(const SampledStack& sampled);
  void complete_cut(const SampledStack& sampled, SampleWalk& walked);
  SampleWalk go_on_beyond_left_stack(const SampledStack& sampled, const unwind::Walk& walk);
  static bool may_be_of_old_code(const unwind::Walk& walk, const sampling::SampleEvent& sample);

  CodeInMemory code_in_memory_;
  CopiedCode copied_code_;
  unwind::Unwinder unwinder_;
  unwind::WalkMemories memories_;
  StackCompletion completion_;
  DeepThreads deep_threads_;
  LeftStacks left_stacks_;
  std::vector<uint64_t> frame_pointer_chain_;
  std::vector<uint8_t> dwarf_numbers_;  // of the sampled registers, in record order
  uint64_t unwind_ns_ = 0;
};

}  // namespace sentry_prof::recorder
