// Frames that are left by where their function begins: what its code has put on the stack up to the
// pc. Of code that does not return, which says nothing of the way out of it.
#include "unwind/main_function.h"
#include "unwind/walker.h"

namespace sentry_prof::unwind {
namespace {

// busybox's functions have frames of a few hundred bytes.
constexpr unsigned kMaxSearchedFrame_words = 256;
// How far from its beginning the pc may be in the function.
constexpr uint64_t kMaxFunction_bytes = 16u << 10;

// Or go on to there by a jump: backward, too.
bool may_contain(RuntimeAddress function, RuntimeAddress pc) {
  return std::max(pc, function).value - std::min(pc, function).value <= kMaxFunction_bytes;
}

}  // namespace

bool Walker::may_read_function() const {
  return arch_ == Arch::X86_64 && module_->image != kNoImage && module_->code != nullptr &&
         !has_unread_image();
}

// The return address lies somewhere above.
std::optional<Step> Walker::step_by_function_start() {
  if (!may_read_function()) return std::nullopt;
  trail_.breaks();  // rests on more words than a step remembers
  const Place here{{cursor_.pc}, {cursor_.sp}, module_};
  CompactRule rule = rule_by_caller(here);
  if (rule.kind == CompactKind::NoCfi) rule = rule_by_callers_caller(here);
  if (rule.kind == CompactKind::NoCfi) return std::nullopt;
  cache_.insert(cache_key(to_link({cursor_.lookup_pc()}, module_->bias)), rule);
  return step_by_code(rule);
}

// Behind the call that led to this function; that call says where the function begins. Read from
// there, the code has put on the stack just what is below the return address.
CompactRule Walker::rule_by_caller(const Place& place) {
  spend(kMaxSearchedFrame_words);
  const CompactRule of_main = rule_in_main(place);
  for (unsigned i = 0; i < kMaxSearchedFrame_words; ++i) {
    uint64_t return_address = 0;
    if (!stack_.read_u64({place.sp.value + i * sizeof(uint64_t)}, return_address)) break;
    const CallSite call = call_behind(return_address);
    CompactRule rule;
    if (call.kind == CallKind::Direct) {
      rule = rule_in_function(place, {target_of(call, return_address)});
    }
    if (call.kind == CallKind::Indirect) rule = of_main;
    if (rule.kind != CompactKind::NoCfi && rule.cfa_words == static_cast<int>(i) + 1) return rule;
  }
  return {};
}

// The call was by a pointer, and does not say where it led. But of its return address, where that
// is one, rule_by_caller() knows, and so that the function's frame ends just there. A leftover of
// another call from there has no caller any more: this function's call has taken its place. A call
// that may have led to this function is passed over by neither: there it is only not known how.
CompactRule Walker::rule_by_callers_caller(const Place& place) {
  for (unsigned i = 0; i < kMaxSearchedFrame_words; ++i) {
    const uint64_t slot = place.sp.value + i * sizeof(uint64_t);
    uint64_t return_address = 0;
    if (work_left_ == 0 || !stack_.read_u64({slot}, return_address)) break;
    const CallSite call = call_behind(return_address);
    if (call.kind == CallKind::Direct && may_contain({target_of(call, return_address)}, place.pc)) {
      break;
    }
    if (call.kind != CallKind::Indirect) continue;
    const Module* const module = module_at(return_address - 1);
    const Place caller{{return_address}, {slot + sizeof(uint64_t)}, module};
    if (module->code == nullptr || rule_by_caller(caller).kind == CompactKind::NoCfi) break;
    return {.kind = CompactKind::CodeFromSp,
            .fp = CompactFp::Unknown,
            .cfa_words = static_cast<int16_t>(i + 1),
            .return_address_words = -1};
  }
  return {};
}

bool Walker::has_direct_call_above() {
  trail_.breaks();  // rests on more words than a step remembers
  spend(kMaxSearchedFrame_words);
  for (unsigned i = 0; i < kMaxSearchedFrame_words; ++i) {
    uint64_t word = 0;
    if (!stack_.read_u64({cursor_.sp + i * sizeof word}, word)) break;
    if (call_behind(word).kind == CallKind::Direct) return true;
  }
  return false;
}

// The row goes by a frame pointer that leads nowhere, since it is no more the function's own: where
// an exception is about to land, libgcc has put the landing pad's registers into the places that
// the frame's own were saved to. What the frame saved of its caller's is not to be had either.
Step Walker::step_past_lost_frame_pointer(CompactRule rule_of_row) {
  const bool may_read = rule_of_row.kind == CompactKind::CfaFromFp && arch_ == Arch::X86_64 &&
                        !cursor_.pc_is_exact && module_->code != nullptr;
  if (!may_read) return ends(WalkEnd::NoProgress);
  trail_.breaks();  // rests on more words than a step remembers
  Row row;
  const LinkAddress pc = to_link({cursor_.lookup_pc()}, module_->bias);
  const RowStatus status = module_->cfi->row_at(pc, row);
  const bool has_start =
      spend(row.work) && status == RowStatus::Found && row.function_begin.value != 0;
  if (!has_start) return ends(WalkEnd::NoProgress);
  CompactRule rule = rule_in_function({{cursor_.pc}, {cursor_.sp}, module_},
                                      to_runtime(row.function_begin, module_->bias));
  rule.fp = CompactFp::Unknown;
  const auto step = step_by_code(rule);
  return step ? *step : ends(WalkEnd::NoProgress);
}

CompactRule Walker::rule_in_function(const Place& place, RuntimeAddress begin) {
  if (!may_contain(begin, place.pc)) return {};
  uint32_t work = 0;
  const LoadBias bias = place.module->bias;
  const CompactRule rule =
      rule_from_function(*place.module->code, to_link(begin, bias), to_link(place.pc, bias), work);
  return spend(work) ? rule : CompactRule{};
}

// The C library calls it by a pointer.
CompactRule Walker::rule_in_main(const Place& place) {
  uint32_t work = 0;
  const auto begin = main_function(*place.module->code, work);
  const bool is_known = spend(work) && begin;
  return is_known ? rule_in_function(place, to_runtime(*begin, place.module->bias)) : CompactRule{};
}

}  // namespace sentry_prof::unwind
