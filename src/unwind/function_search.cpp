#include "unwind/function_search.h"

#include "unwind/rule_from_code.h"
#include "unwind/start_code.h"

#include <algorithm>
#include <optional>

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

// The return address lies somewhere above, behind the call that led to this function, and that call
// says where the function begins. Read from there, the code has put on the stack just what is below
// the return address.
CompactRule FunctionSearch::by_caller() {
  std::optional<CompactRule> in_main;
  for (unsigned i = 0; i < kMaxSearchedFrame_words && spend(1) && has_work(work_left_); ++i) {
    uint64_t return_address = 0;
    if (!stack_.read_u64({sp_ + i * sizeof(uint64_t)}, return_address)) break;
    const CallSite call = addresses_.call_behind(return_address);
    CompactRule rule;
    if (call.kind == CallKind::Direct) {
      rule = rule_in_function({call.target(return_address)});
    } else if (call.kind == CallKind::Indirect) {
      if (!in_main) in_main = rule_in_main();
      rule = *in_main;
    }
    if (rule.kind != CompactKind::NoCfi && rule.cfa_words == static_cast<int>(i) + 1) return rule;
  }
  return {};
}

CompactRule FunctionSearch::from_beginning(RuntimeAddress begin) {
  const CompactRule rule = rule_in_function(begin);
  return is_called_from_where_it_leads(begin, rule) ? rule : CompactRule{};
}

CompactRule FunctionSearch::rule_in_function(RuntimeAddress begin) {
  if (!may_contain(begin, pc_)) return {};
  if (last_.is_known && last_.begin == begin) return last_.rule;
  uint32_t work = 0;
  const CompactRule rule = rule_from_function(*module_.code, to_link(begin, module_.bias),
                                              to_link(pc_, module_.bias), work);
  last_ = {true, begin, spend(work) ? rule : CompactRule{}};
  return last_.rule;
}

// The C library calls it by a pointer.
CompactRule FunctionSearch::rule_in_main() {
  uint32_t work = 0;
  const auto begin = main_function(*module_.code, work);
  if (!spend(work) || !begin) return {};
  return rule_in_function(to_runtime(*begin, module_.bias));
}

bool FunctionSearch::is_called_from_where_it_leads(RuntimeAddress function, CompactRule rule) {
  if (rule.kind == CompactKind::NoCfi) return false;
  const int64_t slot_words = int64_t{rule.cfa_words} + rule.return_address_words;
  uint64_t return_address = 0;
  if (!stack_.read_u64({sp_ + static_cast<uint64_t>(slot_words * 8)}, return_address)) return false;
  const CallSite call = addresses_.call_behind(return_address);
  if (call.kind != CallKind::Direct) return call.kind == CallKind::Indirect;
  const RuntimeAddress target{call.target(return_address)};
  return target == function || modules_.find(target) != &module_;  // else by a stub of the PLT
}

}  // namespace sentry_prof::unwind
