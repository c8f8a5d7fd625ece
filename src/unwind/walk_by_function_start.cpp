// Frames that are left by where their function begins: what its code has put on the stack up to the
// pc.
#include "unwind/function_search.h"
#include "unwind/walker.h"

#include <optional>

namespace sentry_prof::unwind {

bool Walker::may_read_function() const {
  return arch_ == Arch::X86_64 && module_->image != kNoImage && module_->code != nullptr;
}

FunctionSearch Walker::search() {
  return {*module_, {cursor_.pc}, cursor_.sp, stack_, modules_, addresses_, work_left_};
}

// `rule` is what the code said, which led nowhere.
std::optional<Step> Walker::step_by_function_start(CompactRule rule) {
  if (!may_read_function()) return std::nullopt;
  trail_.breaks();  // rests on more words than a step remembers, and on whether a search is due
  const uint64_t key = cache_key(to_link({cursor_.lookup_pc()}, module_->bias));
  const uint64_t searched = key == RuleCache::kNoKey ? cursor_.lookup_pc() : key;
  if (!FunctionSearch::has_work(work_left_) || !vain_searches_.is_due(searched)) {
    return std::nullopt;
  }
  const CompactRule found = search().by_caller();
  if (found.kind == CompactKind::NoCfi) {
    vain_searches_.add(searched);
    return std::nullopt;
  }
  vain_searches_.clear(searched);
  // In place of the rule that was kept, if it was. The same code may still be a root's, on another
  // stack.
  const bool was_kept = cache_.find(key) != nullptr;
  if (was_kept && rule.kind != CompactKind::RootBehindNoCall) cache_.insert(key, found);
  return step_by_code(found);
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
  CompactRule rule = search().from_beginning(to_runtime(row.function_begin, module_->bias));
  rule.fp = CompactFp::Unknown;
  const auto step = step_by_code(rule);
  return step ? *step : ends(WalkEnd::NoProgress);
}

}  // namespace sentry_prof::unwind
