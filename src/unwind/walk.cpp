#include "unwind/walk.h"

#include "unwind/frame_pointer_chain.h"
#include "unwind/walker.h"

#include <algorithm>

namespace sentry_prof::unwind {

Unwinder::Unwinder(Arch arch, size_t cache_bytes, const CodeSource* memory_code)
    : arch_(arch),
      cache_(cache_bytes),
      code_facts_(std::make_unique<CodeFacts>(arch, memory_code)),
      frames_(std::make_unique<std::array<WalkedFrame, kMaxFrames>>()) {
  steps_.reserve(2 * kMaxRememberedSteps);
}

Walk Unwinder::walk(const Registers& registers, const StackSnapshot& stack,
                    const ModuleMap& modules, WalkMemory* memory, AtEndOfCopy at_end_of_copy,
                    FrameOrigin first) {
  const ArchRegisters names = arch_registers(arch_);
  if (!registers.is_known(names.program_counter) || !registers.is_known(names.stack_pointer)) {
    return {{}, WalkEnd::UnknownRegister};
  }
  uint32_t work_left = kMaxWork;
  code_facts_->memory_rules.begin_walk();
  WalkTrail trail(memory, modules.version(), steps_);
  const auto run = [&](Mode mode) {
    Walker walker(arch_, registers, stack, modules, cache_, *code_facts_, stats_, *frames_, trail,
                  work_left);
    const Walk walk = walker.run(mode, first);
    const bool joins = at_end_of_copy == AtEndOfCopy::Joins && walk.end == WalkEnd::StackTruncated;
    return joins ? walker.join() : walk;
  };
  Walk walk = run(Mode::Fast);
  // Perhaps an inner frame saved the register that was missing: once more, with all of them.
  if (walk.end == WalkEnd::UnknownRegister) {
    ++stats_.restarts;
    const size_t frames = walk.frames_walked();
    walk = run(Mode::Full);
    // Its rows cost more: what was left of the work may have brought it less far.
    if (walk.frames_walked() < frames) {
      work_left = kMaxWork;
      walk = run(Mode::Fast);
    }
  }
  walk.is_followed = steps_are_followed_ = trail.is_followed();
  kept_ = trail.kept();
  stats_.cache_hits = cache_.hits();
  stats_.cache_misses = cache_.misses();
  return walk;
}

Walk Unwinder::walk_again(const Registers& registers, const StackSnapshot& stack,
                          const ModuleMap& modules, WalkMemory* memory) {
  code_facts_->memory_rules.take_back_vain_searches();
  return walk(registers, stack, modules, memory);
}

Walk Unwinder::join(const Registers& registers, const StackSnapshot& stack,
                    const ModuleMap& modules, WalkMemory& memory) {
  return walk(registers, stack, modules, &memory, AtEndOfCopy::Joins);
}

Walk Unwinder::follow(const Walk& walk, std::span<const uint64_t> frame_pointer_chain,
                      const ModuleMap& modules) {
  const size_t walked = walk.frames.size();
  if (walk.end != WalkEnd::OtherStack || walk.frames_left_out > 0) return walk;
  FramePointerChain chain(frame_pointer_chain, modules, cache_, code_facts_->call_sites);
  const std::span<const uint64_t> rest = chain.beyond(walk.frames);
  if (rest.empty() || rest.size() > kMaxFrames - walked) return walk;
  for (size_t i = 0; i < rest.size(); ++i) (*frames_)[walked + i] = chain.frame_of(rest[i]);
  Walk result = walk;
  result.frames = std::span(*frames_).first(walked + rest.size());
  result.end = WalkEnd::Root;
  result.is_followed = false;
  return result;
}

LeftStackWalk Unwinder::walk_left_stack(const LeftStack& left, const StackSnapshot& now,
                                        const ModuleMap& modules) {
  const auto call = call_on_left_stack(left, now, modules, code_facts_->call_sites);
  if (!call) return {};
  Walk result =
      walk(call->registers, now, modules, nullptr, AtEndOfCopy::Ends, FrameOrigin::FramePointer);
  if (!result.is_complete() || result.frames_left_out > 0) {
    result.frames = {};
    return {result};
  }
  for (WalkedFrame& frame : std::span(*frames_).first(result.frames.size())) frame.is_live = true;
  return {result, call->is_of_callee};
}

Walk Unwinder::walk_live(const Registers& registers, const StackSnapshot& stack,
                         const ModuleMap& modules, WalkMemory& memory, size_t copied_frames) {
  const Walk result = walk(registers, stack, modules, &memory, AtEndOfCopy::Ends);
  for (size_t i = 0; i < result.frames.size(); ++i) {
    if (result.number_of(i) >= copied_frames) (*frames_)[i].is_live = true;
  }
  return result;
}

// What else their words held, saved registers, is data.
bool Unwinder::ends_as(const WalkMemory& memory, size_t live_frames) const {
  const std::vector<WalkStep>& known = memory.steps();
  const size_t wanted = std::min(live_frames, kMaxRememberedSteps);
  const bool are_all_known = wanted <= known.size() && wanted <= kept_.size() + steps_.size();
  if (!steps_are_followed_ || wanted == 0 || !are_all_known) return false;
  for (size_t i = 0; i < wanted; ++i) {
    const size_t inner = i - kept_.size();
    const WalkStep& step = i < kept_.size() ? kept_[i] : steps_[steps_.size() - 1 - inner];
    if (step.state.pc != known[i].state.pc || step.state.sp != known[i].state.sp) return false;
  }
  return true;
}

void Unwinder::learn(WalkMemory& memory, const ModuleMap& modules) {
  if (!steps_are_followed_) return;
  memory.use_map(modules.version());
  memory.learn(kept_, steps_);
}

}  // namespace sentry_prof::unwind
