// Where a walk stands.
#pragma once

#include "unwind/walked_frame.h"

#include <cstdint>

namespace sentry_prof::unwind {

// The frame at which the walk stands.
struct Cursor {
  uint64_t pc = 0;
  uint64_t sp = 0;
  uint64_t fp = 0;
  bool fp_is_known = false;
  // False behind a frame pointer of aarch64: `sp` is then no more than a lower bound.
  bool sp_is_known = true;
  // The leaf, or interrupted by a signal: the pc is the next instruction, not a return address.
  bool pc_is_exact = false;
  bool is_leaf = false;
  FrameOrigin origin = FrameOrigin::Leaf;

  // WalkedFrame::lookup_pc()
  uint64_t lookup_pc() const { return pc_is_exact ? pc : pc - 1; }
};

}  // namespace sentry_prof::unwind
