#include "unwind/walk.h"

#include "unwind/walker.h"

namespace sentry_prof::unwind {

Unwinder::Unwinder(Arch arch, size_t cache_bytes)
    : arch_(arch),
      cache_(cache_bytes),
      call_sites_(std::make_unique<CallSites>()),
      frames_(std::make_unique<std::array<WalkedFrame, kMaxFrames>>()) {
  steps_.reserve(kMaxFrames);
}

Walk Unwinder::walk(const Registers& registers, const StackSnapshot& stack,
                    const ModuleMap& modules, WalkMemory* memory, AtEndOfCopy at_end_of_copy) {
  const ArchRegisters names = arch_registers(arch_);
  if (!registers.is_known(names.program_counter) || !registers.is_known(names.stack_pointer)) {
    return {{}, WalkEnd::UnknownRegister};
  }
  uint32_t work_left = kMaxWork;
  WalkTrail trail(memory, modules.version(), steps_);
  const auto run = [&](Mode mode) {
    Walker walker(arch_, registers, stack, modules, cache_, *call_sites_, stats_, *frames_, trail,
                  work_left);
    const Walk walk = walker.run(mode);
    const bool joins = at_end_of_copy == AtEndOfCopy::Joins && walk.end == WalkEnd::StackTruncated;
    return joins ? walker.join() : walk;
  };
  Walk walk = run(Mode::Fast);
  // Perhaps an inner frame saved the register that was missing: once more, with all of them.
  if (walk.end == WalkEnd::UnknownRegister) {
    ++stats_.restarts;
    walk = run(Mode::Full);
  }
  stats_.cache_hits = cache_.hits();
  stats_.cache_misses = cache_.misses();
  return walk;
}

Walk Unwinder::join(const Registers& registers, const StackSnapshot& stack,
                    const ModuleMap& modules, WalkMemory& memory) {
  return walk(registers, stack, modules, &memory, AtEndOfCopy::Joins);
}

}  // namespace sentry_prof::unwind
