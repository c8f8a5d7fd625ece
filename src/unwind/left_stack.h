// A stack that code left for another one: Go's runtime does so to call C. The callers stand there
// until the call returns, but are not in the copy of the stack that runs.
#pragma once

#include "unwind/call_site.h"
#include "unwind/module_map.h"
#include "unwind/registers.h"
#include "unwind/stack_snapshot.h"
#include "unwind/walked_frame.h"

#include <cstdint>
#include <optional>
#include <span>

namespace sentry_prof::unwind {

struct LeftStack {
  ImageId image = kNoImage;  // of the function that changed stacks (runtime.asmcgocall)
  uint64_t changer_pc = 0;   // in it: a link address
  // On the stack that was left: its own; its caller's where it keeps none (up to Go 1.20).
  uint64_t frame_pointer = 0;
  RuntimeAddress callee;  // the first byte of what it called on the other one
};

// For a walk that ended as OtherStack with these frames and Walk::left_frame_pointer. None if that
// is zero, or if no FDE says where the first function that is not Go's begins on the other stack.
std::optional<LeftStack> left_stack_of(std::span<const WalkedFrame> frames, uint64_t frame_pointer,
                                       const ModuleMap& modules);

// How far below its frame pointer a frame that was left ends: runtime.cgocall's has 48 bytes in Go
// 1.19 and 1.24.
inline constexpr uint64_t kLeftFrameReach_bytes = 256;

// What the search for the call may cost, as kMaxWork: whoever has a stack looked at does so for
// every sample, beside the walk. Go 1.19 takes 137 to 608.
inline constexpr uint32_t kMaxLeftStackWork = 1u << 14;

// A call by which a stack was left.
struct LeavingCall {
  Registers registers;  // of the frame that made it, with the address behind the call as pc
  bool is_of_callee = false;
};

// The call by which a stack was left at that frame pointer. `stack` begins kLeftFrameReach_bytes
// below it. The frame that made the call is the one that
//   calls the function which changed stacks,
//   and whose row leads from there to the frame pointer's place, two words below the caller's stack
//   pointer (Go's abi-internal.md, "Stack layout" of amd64).
// It is of the callee if that is the first argument, above the return address (asmcgocall(fn, arg);
// abi-internal.md, "ABI0"), or if the first argument is a function that jumps to it. None if there
// is no such frame: the stack is not any more, or again, as it was left. None either behind
// kMaxLeftStackWork.
std::optional<LeavingCall> call_on_left_stack(const LeftStack& left, const StackSnapshot& stack,
                                              const ModuleMap& modules, CallSites& call_sites);

}  // namespace sentry_prof::unwind
