#include "recorder/sample_walker.h"

#include "os/clock.h"
#include "recorder/register_mapping.h"

#include <cstring>
#include <utility>

namespace sentry_prof::recorder {

using Behind = unwind::StackSnapshot::Behind;

namespace {

// The words of eight bytes in `bytes`, which need not be aligned. `words` keeps its room.
void copy_words(Bytes bytes, std::vector<uint64_t>& words) {
  words.resize(bytes.size() / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint64_t));
}

// 0 if it is not known: of a leaf that nothing called there is no step.
uint64_t outermost_sp_of(const unwind::WalkMemory& memory) {
  return memory.steps().empty() ? 0 : memory.steps().front().state.sp;
}

// Little above its outermost frame, as far as that is known; else 0. Whole pages are copied anyway.
uint64_t stack_end_of(const unwind::WalkMemory& memory) {
  constexpr uint64_t kOutermostFrame_bytes = 512;  // of _start, of clone: a few words
  const uint64_t sp = outermost_sp_of(memory);
  return sp == 0 ? 0 : sp + kOutermostFrame_bytes;
}

RuntimeAddress stack_pointer(const unwind::Registers& registers) {
  return {registers.get(unwind::arch_registers(native_arch()).stack_pointer)};
}

}  // namespace

SampleWalker::SampleWalker(SampleWalkerOptions options)
    : code_in_memory_(options.read_memory),
      copied_code_(options.read_memory),
      unwinder_(native_arch(), unwind::kDefaultRuleCache_bytes,
                options.read_memory ? &code_in_memory_ : nullptr),
      completion_(unwinder_, options.read_memory),
      deep_threads_(std::move(options.follow_outer_stack), std::move(options.now_ns)),
      left_stacks_(unwinder_, options.read_memory),
      dwarf_numbers_(dwarf_numbers_of(options.register_mask)) {}

SampleWalk SampleWalker::walk(uint64_t time_ns, const sampling::SampleEvent& sample,
                              const unwind::ModuleMap& modules) {
  const uint64_t begin_ns = os::monotonic_ns();
  const unwind::Registers registers = to_registers(sample.registers, dwarf_numbers_);
  const Behind behind = sample.stack_is_cut ? Behind::More : Behind::Unknown;
  const SampledStack sampled{.time_ns = time_ns,
                             .sample = sample,
                             .modules = modules,
                             .registers = registers,
                             .record = {stack_pointer(registers), sample.stack, behind},
                             .memory = memories_.of(sample.pid, sample.tid)};
  code_in_memory_.begin_sample(sample.pid, modules, time_ns);
  SampleWalk result = walk_copied(sampled);
  if (result.walk.end == unwind::WalkEnd::OtherStack) {
    result = go_on_beyond_left_stack(sampled, result.walk);
  } else if (result.walk.end == unwind::WalkEnd::StackTruncated) {
    complete_cut(sampled, result);
  }
  unwind_ns_ += os::monotonic_ns() - begin_ns;
  return result;
}

// By the record, and what was copied beside it.
SampleWalk SampleWalker::walk_copied(const SampledStack& sampled) {
  const auto& [time_ns, sample, modules, registers, record, memory] = sampled;
  const Behind behind = record.goes_on() ? Behind::More : Behind::Unknown;
  const unwind::StackSnapshot stack(record.begin(), sample.stack, behind, sample.outer_stack);
  SampleWalk result{unwinder_.walk(registers, stack, modules, &memory)};
  if (may_be_of_old_code(result.walk, sample) && code_in_memory_.doubt()) {
    result = {unwinder_.walk_again(registers, stack, modules, &memory)};
  }
  if (result.walk.end == unwind::WalkEnd::StackTruncated) {
    // What completes it knows of one copy only.
    if (!sample.outer_stack.empty()) result = {unwinder_.walk(registers, record, modules, &memory)};
    result.misses_outer_stack =
        deep_threads_.on_cut(sample.pid, sample.tid, time_ns, stack_end_of(memory));
  } else if (result.walk.is_complete() && result.walk.is_followed) {
    memory.set_seen(time_ns);
    deep_threads_.on_whole(sample.pid, sample.tid, stack_end_of(memory));
    result.was_cut = !sample.outer_stack.empty() && outermost_sp_of(memory) >= record.end();
    if (result.was_cut) result.by = CompletedBy::OuterStack;
  }
  return result;
}

void SampleWalker::complete_cut(const SampledStack& sampled, SampleWalk& walked) {
  const sampling::SampleEvent& sample = sampled.sample;
  const CutStack cut{.pid = sample.pid,
                     .tid = sample.tid,
                     .time_ns = sampled.time_ns,
                     .registers = sampled.registers,
                     .modules = sampled.modules,
                     .begin = sampled.record.begin(),
                     .copy = sample.stack,
                     .copy_is_short = !sample.stack_is_cut,
                     .walk = walked.walk};
  const CompletedStack completed = completion_.complete(cut, sampled.memory);
  const bool is_cut = completed.walk.end == unwind::WalkEnd::StackTruncated;
  walked.walk = completed.walk;
  walked.by = completed.by;
  walked.was_cut = is_cut || completed.by != CompletedBy::Nothing;
  walked.outside_before = completed.outside_before;
}

// Not where the stack ends in the copy, or at another one: that is no wonder.
bool SampleWalker::may_be_of_old_code(const unwind::Walk& walk,
                                      const sampling::SampleEvent& sample) {
  const bool is_cut = walk.end == unwind::WalkEnd::StackTruncated && sample.stack_is_cut;
  return !walk.is_complete() && !is_cut && walk.end != unwind::WalkEnd::OtherStack;
}

// By the kernel's chain of frame pointers, or else by what is on that stack now.
SampleWalk SampleWalker::go_on_beyond_left_stack(const SampledStack& sampled,
                                                 const unwind::Walk& walk) {
  const auto& [time_ns, sample, modules, registers, record, memory] = sampled;
  copy_words(sample.frame_pointer_chain, frame_pointer_chain_);
  const unwind::Walk followed = unwinder_.follow(walk, frame_pointer_chain_, modules);
  if (followed.is_complete()) {
    left_stacks_.learn(followed, walk.frames.size(), sample.pid, time_ns, modules);
    return {followed};
  }
  const WholeWalk left = left_stacks_.complete(followed, sample.pid, time_ns, modules);
  const bool is_whole = left.walk.is_complete();
  return {.walk = left.walk,
          .by = is_whole ? CompletedBy::LeftStack : CompletedBy::Nothing,
          .left_at = left.seen_at};
}

const unwind::Module* SampleWalker::find_copied_code(const target::Process& process,
                                                     const unwind::Walk& walk, uint64_t time_ns) {
  for (const unwind::WalkedFrame& frame : walk.frames) {
    if (frame.image != unwind::kNoImage) continue;
    const RuntimeAddress pc{frame.lookup_pc()};
    const unwind::Module* const code = process.possible_code.find(pc);
    if (code == nullptr || code->image == unwind::kNoImage) continue;
    if (copied_code_.is_copy({process.pid, time_ns, MemoryKind::Code}, *code, pc)) return code;
  }
  return nullptr;
}

uint64_t SampleWalker::pc_of(const sampling::SampleEvent& sample) const {
  return to_registers(sample.registers, dwarf_numbers_)
      .get(unwind::arch_registers(native_arch()).program_counter);
}

void SampleWalker::forget_code(uint32_t pid) {
  copied_code_.forget(pid);
  code_in_memory_.forget(pid);
}

}  // namespace sentry_prof::recorder
