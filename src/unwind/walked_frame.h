// A frame as a walk finds it.
#pragma once

#include "unwind/module_map.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sentry_prof::unwind {

// How a frame's pc was found. Ends up in the summary's `frames_by_origin`.
enum class FrameOrigin : uint8_t {
  Leaf,          // the interrupted pc itself
  Cfi,           // by a row of unwind information
  FramePointer,  // by the frame pointer, where no CFI exists, and on aarch64 where a row counts
                 // from the stack pointer, which is not known since then
  LinkRegister,  // by the link register, where no CFI exists (aarch64)
  Code,          // by reading on in code without CFI to its return, and right behind a call
  ProcessStart,  // the entry point's code, whose call stands where the process's stack begins
  KernelChain,   // by the kernel, which followed frame pointers when it took the sample
};
inline constexpr size_t kFrameOriginCount = 7;
std::string_view name_of(FrameOrigin origin);

struct WalkedFrame {
  ImageId image = kNoImage;
  FrameOrigin origin = FrameOrigin::Leaf;
  // True for the leaf, for the frame that a signal interrupted, and for what looked like a return
  // address and is none: a landing pad, or a root that was laid out by hand under a stack's first
  // function. False for return addresses.
  bool pc_is_exact = false;
  // Found with what was not copied with the sample but read from the process after it.
  bool is_live = false;
  // Taken from the thread's last whole walk, or its next one: WalkMemory::beyond().
  bool is_joined = false;
  // With an image: the link address. Without: the runtime address. Raw, never minus one.
  uint64_t pc = 0;

  // Where its code is looked up: a call may be a function's last instruction, and then the return
  // address belongs to the next one.
  uint64_t lookup_pc() const { return pc_is_exact ? pc : pc - 1; }
};

}  // namespace sentry_prof::unwind
