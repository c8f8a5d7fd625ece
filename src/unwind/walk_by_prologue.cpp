// What HotSpot compiles: its code keeps no frame pointer. Its interpreter does, and calls that code
// with a return address laid out by hand, behind no call. Called by it, the interpreter moves the
// stack pointer to make room for its local variables, and keeps in the word below its frame record
// where it was (frame::interpreter_frame_sender_sp_offset).
#include "unwind/rule_from_prologue.h"
#include "unwind/walker.h"

#include <optional>

namespace sentry_prof::unwind {

std::optional<Step> Walker::step_by_prologue() {
  uint32_t work = 0;
  const auto rule =
      memory_rules_.by_prologue(begin_of_memory_code(), cursor_.pc, cursor_.pc_is_exact, work);
  if (!spend(work)) return ends(WalkEnd::Unsupported);
  if (!rule) return leave_unread_code(WalkEnd::NoUnwindInfo);
  if (rule->kind != CompactKind::CodeFromSp) return std::nullopt;
  went_by_prologue_ = true;
  const uint64_t cfa_above_sp = as_bytes(rule->cfa_words);
  const auto step_from = [&](uint64_t sp) {
    return step_by_code_to(sp + cfa_above_sp, *rule, Believed::AlsoMemoryCode);
  };
  if (const std::optional<uint64_t> sp = sp_kept_by_callee(cfa_above_sp)) {
    if (const auto step = step_from(*sp)) return step;
  }
  // Between its calls a function may have pushed registers: where it looks for an interface among
  // those of a class, up to three (MacroAssembler::check_klass_subtype_slow_path).
  const uint64_t most_pushed_words = cursor_.pc_is_exact ? 3 : 0;
  for (uint64_t pushed_words = 0; pushed_words <= most_pushed_words; ++pushed_words) {
    if (const auto step = step_from(cursor_.sp + 8 * pushed_words)) return step;
  }
  return std::nullopt;
}

// Where the mappings begin that lie one beside the other, as far as it matters.
RuntimeAddress Walker::begin_of_memory_code() const {
  RuntimeAddress begin = module_->begin;
  while (begin < RuntimeAddress{cursor_.pc} && cursor_.pc - begin.value < kPrologueReach_bytes) {
    const Module* const before = modules_.find({begin.value - 1});
    if (before == nullptr || before->image != kNoImage) break;
    begin = before->begin;
  }
  return begin;
}

// None if that is where the frame record ends anyway, or the frame would lie beyond the copy.
std::optional<uint64_t> Walker::sp_kept_by_callee(uint64_t cfa_above_sp) {
  constexpr uint64_t kMaxLocals_bytes = 16u << 10;  // most methods have some ten of them
  constexpr uint64_t kFrameRecord_bytes = 16;       // which ends at the stack pointer
  if (cursor_.origin != FrameOrigin::FramePointer) return std::nullopt;
  trail_.breaks();  // rests on more words than a step remembers
  uint64_t sp = 0;
  uint64_t return_address = 0;
  if (!stack_.read_u64({cursor_.sp - kFrameRecord_bytes - 8}, sp)) return std::nullopt;
  const bool is_kept = sp > cursor_.sp && sp - cursor_.sp <= kMaxLocals_bytes && sp % 8 == 0;
  const bool has_frame = is_kept && stack_.read_u64({sp + cfa_above_sp - 8}, return_address);
  return has_frame ? std::optional(sp) : std::nullopt;
}

}  // namespace sentry_prof::unwind
