#include "unwind/frame_pointer_chain.h"

#include "unwind/compact_rule.h"

#include <algorithm>
#include <optional>

namespace sentry_prof::unwind {

std::span<const uint64_t> FramePointerChain::beyond(std::span<const WalkedFrame> walked) {
  const std::span<const uint64_t> rest = behind_last_in(walked);
  if (rest.empty() || !is_root(rest.back())) return {};
  const auto inner = rest.first(rest.size() - 1);
  const bool are_calls =
      std::all_of(inner.begin(), inner.end(), [&](uint64_t pc) { return is_behind_call(pc); });
  return are_calls ? rest : std::span<const uint64_t>();
}

// Code without a frame of its own, as leaves often are, is not in the chain.
std::span<const uint64_t> FramePointerChain::behind_last_in(
    std::span<const WalkedFrame> walked) const {
  if (walked.empty() || pcs_.empty() || !is_frame(pcs_.front(), walked.front())) return {};
  auto frame = walked.begin() + 1;
  size_t in_common = 1;
  for (; in_common < pcs_.size(); ++in_common) {
    const auto same = std::find_if(frame, walked.end(), [&](const WalkedFrame& candidate) {
      return is_frame(pcs_[in_common], candidate);
    });
    if (same == walked.end()) break;
    frame = same + 1;
  }
  return pcs_.subspan(in_common);
}

bool FramePointerChain::is_frame(uint64_t runtime_pc, const WalkedFrame& frame) const {
  const Module* module = modules_.find({runtime_pc - (frame.pc_is_exact ? 0 : 1)});
  if (module == nullptr || module->image != frame.image) return false;
  const bool has_image = module->image != kNoImage;
  return frame.pc == (has_image ? to_link({runtime_pc}, module->bias).value : runtime_pc);
}

bool FramePointerChain::is_behind_call(uint64_t runtime_pc) {
  const Module* module = modules_.find({runtime_pc - 1});
  if (module == nullptr) return false;
  uint32_t work = 0;
  const CallKind kind = call_sites_.before(*module, module->code, runtime_pc, work).kind;
  return kind == CallKind::Direct || kind == CallKind::Indirect;
}

bool FramePointerChain::is_root(uint64_t runtime_pc) {
  const Module* module = modules_.find({runtime_pc - 1});
  if (module == nullptr || module->cfi == nullptr) return false;
  const LinkAddress pc = to_link({runtime_pc - 1}, module->bias);
  const std::optional<uint64_t> key = RuleCache::key_of(module->image, pc);
  if (!key) return false;
  if (const CompactRule* known = cache_.find(*key)) return known->kind == CompactKind::Root;
  Row row;
  if (module->cfi->row_at(pc, row) != RowStatus::Root) return false;
  cache_.insert(*key, compact_rule_of(RowStatus::Root));
  return true;
}

WalkedFrame FramePointerChain::frame_of(uint64_t runtime_pc) const {
  const Module& module = *modules_.find({runtime_pc - 1});
  return {.image = module.image,
          .origin = FrameOrigin::FramePointer,
          .pc = to_link({runtime_pc}, module.bias).value};
}

}  // namespace sentry_prof::unwind
