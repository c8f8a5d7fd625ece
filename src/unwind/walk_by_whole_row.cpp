// The row of a frame, and frames whose row fits no compact rule: signal frames, expressions,
// registers other than the usual ones, landing pads.
#include "unwind/arm_code.h"
#include "unwind/dwarf_expression.h"
#include "unwind/walker.h"

#include <optional>

namespace sentry_prof::unwind {
namespace {

// From a signal frame up to the code that it interrupted, on the same stack: the red zone and the
// saved vector state, 11 KiB with AMX. A longer way leads to another stack.
constexpr uint64_t kSignalFrameReach_bytes = 16u << 10;

// OpenSSL's SHA-512 has 1.3 KiB.
constexpr uint64_t kAssemblyFrame_bytes = 4096;

// How often one walk may change to another stack over a signal frame. One alternate stack a thread
// makes one; switches of a coroutine's stack inside a handler are the reason for a few more.
constexpr unsigned kMaxStackChanges = 8;

// On x86-64, of a function that was just called. One that has called others keeps more than its
// return address on the stack, which has to be aligned then (psABI, section 3.2.2).
bool may_be_of_first_instruction(const Row& row) {
  return row.cfa_kind == CfaKind::RegisterOffset && row.cfa_offset == 8 &&
         row.cfa_register == arch_registers(Arch::X86_64).stack_pointer;
}

}  // namespace

// `pc`: where the frame at the cursor is looked up. Unwinders return to landing pads (libgcc's
// uw_install_context): no call stands before one, and where a row ends there, which is of another
// block, the next one holds. Before a part of a function that was laid out elsewhere (.cold) there
// may be none; on aarch64 that is not looked for. Nor stands a call before the code that signal
// handlers return to: only glibc's row of it begins one byte early. Both are no return addresses,
// and have their own names by that.
FrameRow Walker::row_of_frame(LinkAddress pc, Row& row) {
  FrameRow found{.status = module_->cfi->row_at(pc, row)};
  const LinkAddress behind{pc.value + 1};
  const bool ends_here = found.status == RowStatus::Found
                             ? row.end == behind && !row.is_signal_frame
                             : found.status == RowStatus::NoCfi && arch_ == Arch::X86_64;
  if (cursor_.pc_is_exact || !ends_here) return found;
  Row next;
  next.work = row.work;
  const RowStatus next_status = module_->cfi->row_at(behind, next);
  row.work = next.work;
  row.is_provisional = row.is_provisional || next.is_provisional;
  if (next_status != RowStatus::Found) return found;
  found.is_before_function = found.status == RowStatus::NoCfi && !next.is_signal_frame;
  const bool begins_function = !next.is_signal_frame && may_be_of_first_instruction(next);
  if (begins_function && found.is_before_function) return found;  // RootBehindNoCall
  if (addresses_.call_behind(cursor_.pc).kind != CallKind::None) return found;
  if (begins_function) return {.status = RowStatus::NoCfi, .is_before_function = true};
  row = next;
  frames_.last().pc_is_exact = true;
  trail_.restate(frames_.last());
  return {.status = RowStatus::Found, .begins_at_exact_pc = true};
}

// Or of the epilogue's code, where the row does not hold there. What that costs is added to the
// row's work.
CompactRule Walker::rule_of_row(LinkAddress pc, Row& row) const {
  const CompactRule rule = compact_rule_of(row, names_);
  const bool may_be_epilogue = arch_ == Arch::Aarch64 && rule.kind == CompactKind::CfaFromFp &&
                               cursor_.pc_is_exact && module_->code != nullptr;
  if (!may_be_epilogue) return rule;
  const CompactRule of_epilogue = rule_of_epilogue(*module_->code, pc, row.work);
  return of_epilogue.kind == CompactKind::NoCfi ? rule : of_epilogue;
}

Step Walker::step_by_whole_row(LinkAddress pc) {
  Row row;
  const uint32_t unanswered_before = unanswered_reads();
  const FrameRow found = row_of_frame(pc, row);
  if (found.status != RowStatus::Found) {
    return step_without_row(found, pc, row, unanswered_before);
  }
  const CompactRule rule = rule_of_row(pc, row);
  if (!spend(row.work)) return ends(WalkEnd::Unsupported);
  const bool is_from_sp =
      rule.kind == CompactKind::CfaFromSp || rule.kind == CompactKind::CfaFarFromSp;
  if (!cursor_.sp_is_known && is_from_sp) return step_by_rule(pc, rule);
  const bool is_in_epilogue =
      rule.kind == CompactKind::LinkFromSp && row.cfa_register == names_.frame_pointer;
  if (!is_in_epilogue) return step_over(row);
  const Step step = step_by_rule(pc, rule);
  registers_ = {};  // which others are restored yet is not known
  return step;
}

// Rules that are made without a row serve both modes.
Step Walker::step_without_row(FrameRow found, LinkAddress pc, Row& row,
                              uint32_t unanswered_before) {
  const uint64_t key = cache_key(pc);
  const CompactRule* cached = cache_.find(key);
  if (cached != nullptr && !has_cfa_of_row(cached->kind)) return step_by_rule(pc, *cached);
  const CompactRule rule = rule_without_row(found, pc, row);
  keep_rule(key, rule, row, unanswered_before);
  return spend(row.work) ? step_by_rule(pc, rule) : ends(WalkEnd::Unsupported);
}

Step Walker::step_over(const Row& row) {
  ++stats_.full_rows;
  trail_.breaks();
  put_cursor_into_registers();
  const RowResult result =
      apply_row(row, arch_, {.registers = registers_, .is_leaf = cursor_.is_leaf}, stack_);
  if (!spend(result.work)) return ends(WalkEnd::Unsupported);
  if (result.outcome != RowOutcome::Stepped) return step_by_row_that_failed(row, result);
  return take_registers(result.caller, row.is_signal_frame);
}

Step Walker::step_by_row_that_failed(const Row& row, const RowResult& result) {
  if (result.outcome == RowOutcome::UnknownRegister) {
    if (has_frame_record_of(row)) return step_by_frame_pointer();
    if (const std::optional<Step> step = step_by_leafs_register(row)) return *step;
  }
  if (result.outcome == RowOutcome::BadMemory) {
    if (const auto step = step_by_copy_of_sp(row, result.failed_address)) return *step;
  }
  return ends_with(result);
}

// OpenSSL's AES-GCM and AES-XTS say that their CFA is in %rax, in which calls may leave anything.
// What they call is assembly, too, and leaves it alone.
std::optional<Step> Walker::step_by_leafs_register(const Row& row) {
  const bool is_called_leaf = first_ == FrameOrigin::Leaf && frames_.count() == 2;
  const bool may_be_kept = arch_ == Arch::X86_64 && mode_ == Mode::Full && is_called_leaf &&
                           !cursor_.pc_is_exact && row.cfa_kind == CfaKind::RegisterOffset &&
                           leaf_.is_known(row.cfa_register);
  if (!may_be_kept || registers_.is_known(row.cfa_register)) return std::nullopt;
  registers_.set(row.cfa_register, leaf_.get(row.cfa_register));
  return step_by_likely_row(row);
}

// OpenSSL's SHA-512 for AVX2 has the stack pointer of its beginning, which leads to its return
// address, in the red zone, which is not copied, and in its frame, too.
std::optional<Step> Walker::step_by_copy_of_sp(const Row& row, RuntimeAddress failed) {
  const bool may_have = arch_ == Arch::X86_64 && cursor_.is_leaf &&
                        row.cfa_kind == CfaKind::Expression &&
                        is_in_red_zone(failed.value, cursor_.sp);
  if (!may_have || !spend(kAssemblyFrame_bytes / 8)) return std::nullopt;
  Row by_copy = row;
  by_copy.cfa_kind = CfaKind::RegisterOffset;
  by_copy.cfa_register = static_cast<uint16_t>(names_.stack_pointer);
  const uint64_t end = cursor_.sp + kAssemblyFrame_bytes;
  for (uint64_t place = cursor_.sp; place < end; place += 8) {
    uint64_t slot = 0;
    if (!stack_.read_u64({place}, slot)) break;
    if (slot <= place || slot >= end || slot % 8 != 0) continue;
    by_copy.cfa_offset = static_cast<int64_t>(slot + 8 - cursor_.sp);
    if (const std::optional<Step> step = step_by_likely_row(by_copy)) return step;
  }
  return std::nullopt;
}

// Believed if it leads behind a call.
std::optional<Step> Walker::step_by_likely_row(const Row& row) {
  const RowResult result =
      apply_row(row, arch_, {.registers = registers_, .is_leaf = cursor_.is_leaf}, stack_);
  const bool is_believed = spend(result.work) && result.outcome == RowOutcome::Stepped &&
                           addresses_.is_behind_call(result.caller.get(names_.program_counter));
  if (!is_believed) return std::nullopt;
  const Step step = take_registers(result.caller, row.is_signal_frame);
  cursor_.origin = FrameOrigin::Code;
  return step;
}

// Whether the frame pointer is this function's own, where the CFA needs a register that no walk
// knows: that of the vector length, in frames that keep SVE's vectors (AADWARF64, section 4.1, VG).
// Compilers say by the stack pointer alone then where the function has saved its caller's.
bool Walker::has_frame_record_of(const Row& row) {
  const RegisterRule& rule = row.rules[names_.frame_pointer];
  const bool may_have = arch_ == Arch::Aarch64 && mode_ == Mode::Full && !cursor_.pc_is_exact &&
                        cursor_.fp_is_known && rule.kind == RuleKind::AtExpression;
  if (!may_have) return false;
  const ExpressionResult place =
      evaluate_expression(rule.expression, registers_, stack_, std::nullopt);
  spend(place.steps);
  return place.status == ExpressionStatus::Ok && place.value == cursor_.fp;
}

// In the fast walk nothing but the cursor is known, except of the leaf and of what a signal
// interrupted.
void Walker::put_cursor_into_registers() {
  if (mode_ == Mode::Fast && !cursor_.pc_is_exact) registers_ = {};
  registers_.set(names_.program_counter, cursor_.pc);
  registers_.set(names_.stack_pointer, cursor_.sp);
  if (!cursor_.sp_is_known) registers_.forget(names_.stack_pointer);
  if (cursor_.fp_is_known) {
    registers_.set(names_.frame_pointer, cursor_.fp);
  } else {
    registers_.forget(names_.frame_pointer);
  }
}

Step Walker::ends_with(const RowResult& result) {
  switch (result.outcome) {
    case RowOutcome::Root:
      return ends(WalkEnd::Root);
    case RowOutcome::BadMemory:
      return ends_outside(result.failed_address);
    case RowOutcome::UnknownRegister:
      return ends(WalkEnd::UnknownRegister);
    case RowOutcome::Unsupported:
      return ends(WalkEnd::Unsupported);
    default:
      return ends(WalkEnd::BadCfi);
  }
}

Step Walker::take_registers(const Registers& caller, bool is_over_signal_frame) {
  const uint64_t sp = caller.get(names_.stack_pointer);
  if (is_over_signal_frame ? !may_jump_to(sp) : !is_progress(sp)) {
    return ends(WalkEnd::NoProgress);
  }
  if (!is_over_signal_frame && addresses_.is_nobody(caller.get(names_.program_counter))) {
    return ends(WalkEnd::Root);
  }
  registers_ = caller;
  cursor_.fp = caller.get(names_.frame_pointer);
  cursor_.fp_is_known = caller.is_known(names_.frame_pointer);
  move_to_caller(caller.get(names_.program_counter), sp, FrameOrigin::Cfi);
  cursor_.pc_is_exact = is_over_signal_frame;
  return Step::Continues;
}

// A signal handler may run on a stack of its own (sigaltstack), anywhere. Each change of the
// stack could go round in circles, so they are counted.
bool Walker::may_jump_to(uint64_t sp) {
  if (sp > cursor_.sp && sp - cursor_.sp <= kSignalFrameReach_bytes) return true;
  has_left_snapshot_ = sp < stack_.begin().value || stack_.is_beyond_end({sp});
  return ++stack_changes_ <= kMaxStackChanges;
}

}  // namespace sentry_prof::unwind
