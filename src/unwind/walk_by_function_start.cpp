// Frames that are left by where their function begins: what its code has put on the stack up to the
// pc. Of code that does not return, which says nothing of the way out of it.
#include "unwind/main_function.h"
#include "unwind/walker.h"

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

bool Walker::may_read_function() const {
  return arch_ == Arch::X86_64 && module_->image != kNoImage && module_->code != nullptr &&
         !has_unread_image();
}

// `rule` is what the code said, which led nowhere.
std::optional<Step> Walker::step_by_function_start(CompactRule rule) {
  if (!may_read_function()) return std::nullopt;
  trail_.breaks();  // rests on more words than a step remembers, and on whether a search is due
  const uint64_t key = cache_key(to_link({cursor_.lookup_pc()}, module_->bias));
  const uint64_t searched = key == RuleCache::kNoKey ? cursor_.lookup_pc() : key;
  if (!has_work_to_search() || !vain_searches_.is_due(searched)) return std::nullopt;
  const CompactRule found = rule_by_caller();
  if (found.kind == CompactKind::NoCfi) {
    vain_searches_.add(searched);
    return std::nullopt;
  }
  vain_searches_.clear(searched);
  // The same code may still be a root's, on another stack.
  if (rule.kind != CompactKind::RootBehindNoCall) cache_.insert(key, found);
  return step_by_code(found);
}

// The return address lies somewhere above, behind the call that led to this function, and that call
// says where the function begins. Read from there, the code has put on the stack just what is below
// the return address.
CompactRule Walker::rule_by_caller() {
  FunctionRule called;  // recursion calls one function again and again
  std::optional<CompactRule> in_main;
  for (unsigned i = 0; i < kMaxSearchedFrame_words && spend(1) && has_work_to_search(); ++i) {
    uint64_t return_address = 0;
    if (!stack_.read_u64({cursor_.sp + i * sizeof(uint64_t)}, return_address)) break;
    const CallSite call = call_behind(return_address);
    CompactRule rule;
    if (call.kind == CallKind::Direct) {
      rule = rule_in_function({call.target(return_address)}, called);
    } else if (call.kind == CallKind::Indirect) {
      if (!in_main) in_main = rule_in_main();
      rule = *in_main;
    }
    if (rule.kind != CompactKind::NoCfi && rule.cfa_words == static_cast<int>(i) + 1) return rule;
  }
  return {};
}

// Of the code at the cursor. `last` is the answer to the last question.
CompactRule Walker::rule_in_function(RuntimeAddress begin, FunctionRule& last) {
  if (!may_contain(begin, {cursor_.pc})) return {};
  if (last.is_known && last.begin == begin) return last.rule;
  uint32_t work = 0;
  const CompactRule rule = rule_from_function(*module_->code, to_link(begin, module_->bias),
                                              to_link({cursor_.pc}, module_->bias), work);
  last = {true, begin, spend(work) ? rule : CompactRule{}};
  return last.rule;
}

// The C library calls it by a pointer.
CompactRule Walker::rule_in_main() {
  uint32_t work = 0;
  const auto begin = main_function(*module_->code, work);
  if (!spend(work) || !begin) return {};
  FunctionRule function;
  return rule_in_function(to_runtime(*begin, module_->bias), function);
}

// As far as the copy goes; two stand for more, for work that is used up, and for code that cannot
// be read, which may have a call there: these prove nothing.
Walker::CallsAbove Walker::calls_between(uint64_t begin, uint64_t end) {
  constexpr uint32_t kWordsPerWork = 64;  // most words are no addresses of code
  constexpr CallsAbove kMany{.count = 2};
  trail_.breaks();  // rests on more words than a step remembers
  const uint64_t code_begin = modules_.modules().front().begin.value;
  const uint64_t code_bytes = modules_.modules().back().end.value - code_begin;
  CallsAbove calls;
  uint64_t word = 0;
  uint32_t words = 0;
  for (uint64_t slot = begin; slot < end && stack_.read_u64({slot}, word); slot += sizeof word) {
    if (++words % kWordsPerWork == 0 && !spend(1)) return kMany;
    word = without_signature(word);
    if (word - code_begin > code_bytes) continue;
    const CallKind kind = call_behind(word).kind;
    if (!spend(1)) return kMany;
    if (kind == CallKind::None) continue;
    if (calls.count > 0 || kind == CallKind::Unknown) return kMany;
    calls = {.count = 1, .slot = slot, .return_address = word, .kind = kind};
  }
  return calls;
}

// The row goes by a frame pointer that leads nowhere, since it is no more the function's own: where
// an exception is about to land, libgcc has put the landing pad's registers into the places that
// the frame's own were saved to. What the frame saved of its caller's is not to be had either.
Step Walker::step_past_lost_frame_pointer() {
  if (module_->code == nullptr) return ends(WalkEnd::NoProgress);
  trail_.breaks();  // rests on more words than a step remembers
  Row row;
  const LinkAddress pc = to_link({cursor_.lookup_pc()}, module_->bias);
  const RowStatus status = module_->cfi->row_at(pc, row);
  const bool has_start =
      spend(row.work) && status == RowStatus::Found && row.function_begin.value != 0;
  if (!has_start) return ends(WalkEnd::NoProgress);
  const RuntimeAddress begin = to_runtime(row.function_begin, module_->bias);
  FunctionRule function;
  CompactRule rule = rule_in_function(begin, function);
  rule.fp = CompactFp::Unknown;
  if (!may_be_called_by_rule(begin, rule)) return ends(WalkEnd::NoProgress);
  const auto step = step_by_code(rule);
  return step ? *step : ends(WalkEnd::NoProgress);
}

// What an FDE covers may be a later piece of a function (".cold"), which nobody calls.
bool Walker::may_be_called_by_rule(RuntimeAddress function, CompactRule rule) {
  uint64_t return_address = 0;
  const uint64_t slot = cursor_.sp + as_bytes(rule.cfa_words) + as_bytes(rule.return_address_words);
  if (rule.kind == CompactKind::NoCfi || !stack_.read_u64({slot}, return_address)) return false;
  const CallSite call = call_behind(return_address);
  if (call.kind != CallKind::Direct) return call.kind == CallKind::Indirect;
  const RuntimeAddress target{call.target(return_address)};
  return target == function || modules_.find(target) != module_;  // else by a stub of the PLT
}

}  // namespace sentry_prof::unwind
