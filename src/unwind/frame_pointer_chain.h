// The return addresses that the kernel found by frame pointers when it took the sample: it could
// read every stack of the thread, not only the one that was copied.
#pragma once

#include "unwind/call_site.h"
#include "unwind/module_map.h"
#include "unwind/rule_cache.h"
#include "unwind/walk.h"

#include <cstdint>
#include <span>

namespace sentry_prof::unwind {

// Refers to all that it is given. `runtime_pcs` are the leaf's pc and return addresses outward.
class FramePointerChain {
 public:
  FramePointerChain(std::span<const uint64_t> runtime_pcs, const ModuleMap& modules,
                    RuleCache& cache, CallSites& call_sites)
      : pcs_(runtime_pcs), modules_(modules), cache_(cache), call_sites_(call_sites) {}

  // The return addresses outside of `walked` (leaf first, whole, of the same sample), if they can
  // be believed: from the last walked frame on all code has frame pointers
  // (CfiSource::has_frame_pointers()), each address lies right behind a call, and the last one in
  // code that nothing calls. Else none, nor behind kMaxWork.
  std::span<const uint64_t> beyond(std::span<const WalkedFrame> walked);

  // The frame of a return address that beyond() gave.
  WalkedFrame frame_of(uint64_t runtime_pc) const;

 private:
  std::span<const uint64_t> behind_last_in(std::span<const WalkedFrame> walked) const;
  bool leads_on(const WalkedFrame& last) const;
  bool is_believable(uint64_t runtime_pc);
  bool is_root(uint64_t runtime_pc);

  std::span<const uint64_t> pcs_;
  const ModuleMap& modules_;
  RuleCache& cache_;
  CallSites& call_sites_;
  uint32_t work_left_ = kMaxWork;
};

}  // namespace sentry_prof::unwind
