// Code without rows that runs in the frame of other code, which has one: LuaJIT's traces in that of
// its interpreter, which jumps to them. The interpreter is one function of assembly with one row,
// that of the frame which it has everywhere but where it is entered. Nothing in a trace leads
// there: it ends with jumps, and what these lead to finds the frame by a pointer in the heap.
#include "unwind/walker.h"

#include <optional>

namespace sentry_prof::unwind {
namespace {

// The trace's own words on top of that frame: IRIns::s counts them in 8 bits, in units of 4 bytes
// (lj_ir.h, lj_target.h, of LuaJIT 2.1).
constexpr uint64_t kMaxSpilled_bytes = 255 * 4;
// CFRAME_SIZE of lj_frame.h is 80; with unwinding by the C++ runtime it may have more.
constexpr uint64_t kMaxInterpreterFrame_bytes = 256;

}  // namespace

std::optional<Step> Walker::step_by_row_of_called() {
  const uint64_t end = cursor_.sp + kMaxSpilled_bytes + kMaxInterpreterFrame_bytes;
  const CallsAbove call = addresses_.innermost_call(stack_, cursor_.sp, end);
  if (call.count != 1 || call.kind != CallKind::Direct) return std::nullopt;
  const CallSite site = addresses_.call_behind(call.return_address);
  const std::optional<CompactRule> rule = rule_of_called(site.target(call.return_address));
  if (!rule) return std::nullopt;
  const uint64_t cfa = call.slot + sizeof(uint64_t);
  const uint64_t frame_bytes = as_bytes(rule->cfa_words);
  const bool lies_above =
      cfa - cursor_.sp >= frame_bytes && cfa - cursor_.sp <= frame_bytes + kMaxSpilled_bytes;
  if (!lies_above) return std::nullopt;
  trail_.breaks();  // rests on more words than a step remembers
  return step_by_code_to(cfa, *rule);
}

// If it says at the entry that there is a frame.
std::optional<CompactRule> Walker::rule_of_called(uint64_t pc) {
  const Module* const module = addresses_.module_at(pc);
  if (module == nullptr || module->cfi == nullptr) return std::nullopt;
  Row row;
  const RowStatus status = module->cfi->row_at(to_link({pc}, module->bias), row);
  if (!spend(row.work) || status != RowStatus::Found) return std::nullopt;
  CompactRule rule = compact_rule_of(row, names_);
  const bool has_frame =
      rule.kind == CompactKind::CfaFromSp && rule.cfa_words > 1 && rule.return_address_words == -1;
  if (!has_frame) return std::nullopt;
  rule.kind = CompactKind::CodeFromSp;
  return rule;
}

}  // namespace sentry_prof::unwind
