#include "unwind/frame_pointer_chain.h"

#include "unwind/compact_rule.h"

#include <algorithm>

namespace sentry_prof::unwind {
namespace {

bool has_frame_pointers(const Module& module, LinkAddress pc) {
  return module.cfi != nullptr && module.cfi->has_frame_pointers(pc);
}

}  // namespace

std::span<const uint64_t> FramePointerChain::beyond(std::span<const WalkedFrame> walked) {
  if (walked.empty() || !leads_on(walked.back())) return {};
  const std::span<const uint64_t> rest = behind_last_in(walked);
  if (rest.empty() || !is_root(rest.back())) return {};
  const auto inner = rest.first(rest.size() - 1);
  const bool is_whole =
      std::all_of(inner.begin(), inner.end(), [&](uint64_t pc) { return is_believable(pc); });
  return is_whole ? rest : std::span<const uint64_t>();
}

bool FramePointerChain::leads_on(const WalkedFrame& last) const {
  const Module* const module = modules_.find_image(last.image);
  return module != nullptr && has_frame_pointers(*module, {last.lookup_pc()});
}

// Code without a frame of its own, as leaves often are, is not in the chain; and the chain may have
// what was not walked, where code has the frame pointer point elsewhere for a moment.
std::span<const uint64_t> FramePointerChain::behind_last_in(
    std::span<const WalkedFrame> walked) const {
  auto frame = walked.begin();
  size_t rest = 0;
  for (size_t i = 0; i < pcs_.size(); ++i) {
    const WalkedFrame wanted = frame_of(pcs_[i]);
    const auto same = std::find_if(frame, walked.end(), [&](const WalkedFrame& candidate) {
      return candidate.image == wanted.image && candidate.pc == wanted.pc;
    });
    if (i == 0 && same != walked.begin()) return {};  // of another moment
    if (same == walked.end()) continue;
    frame = same + 1;
    rest = i + 1;
  }
  return pcs_.subspan(rest);
}

bool FramePointerChain::is_believable(uint64_t runtime_pc) {
  const Module* module = modules_.find({runtime_pc - 1});
  if (module == nullptr) return false;
  if (!has_frame_pointers(*module, to_link({runtime_pc - 1}, module->bias))) return false;
  uint32_t work = 0;
  const CallKind kind = call_sites_.before(*module, module->code, runtime_pc, work).kind;
  return spend(work, work_left_) && (kind == CallKind::Direct || kind == CallKind::Indirect);
}

bool FramePointerChain::is_root(uint64_t runtime_pc) {
  const Module* module = modules_.find({runtime_pc - 1});
  if (module == nullptr) return false;
  const LinkAddress pc = to_link({runtime_pc - 1}, module->bias);
  if (!has_frame_pointers(*module, pc)) return false;
  const CompactRule* known = cache_.find(RuleCache::key_of(module->image, pc));
  if (known != nullptr) return known->kind == CompactKind::Root;
  Row row;
  const RowStatus status = module->cfi->row_at(pc, row);
  return spend(row.work, work_left_) && status == RowStatus::Root;
}

WalkedFrame FramePointerChain::frame_of(uint64_t runtime_pc) const {
  const Module* module = modules_.find({runtime_pc - 1});
  const bool has_image = module != nullptr && module->image != kNoImage;
  return {.image = has_image ? module->image : kNoImage,
          .origin = FrameOrigin::KernelChain,
          .pc = has_image ? to_link({runtime_pc}, module->bias).value : runtime_pc};
}

}  // namespace sentry_prof::unwind
