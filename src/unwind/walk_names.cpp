// The names under which the summary counts ends of walks and origins of frames.
#include "unwind/walk.h"

namespace sentry_prof::unwind {

std::string_view name_of(FrameOrigin origin) {
  switch (origin) {
    case FrameOrigin::Leaf:
      return "leaf";
    case FrameOrigin::Cfi:
      return "cfi";
    case FrameOrigin::FramePointer:
      return "frame_pointer";
    case FrameOrigin::LinkRegister:
      return "link_register";
    case FrameOrigin::Code:
      return "code";
    case FrameOrigin::ProcessStart:
      return "process_start";
    case FrameOrigin::KernelChain:
      break;
  }
  return "kernel_chain";
}

std::string_view name_of(WalkEnd end) {
  switch (end) {
    case WalkEnd::Root:
      return "root";
    case WalkEnd::StackTruncated:
      return "stack_truncated";
    case WalkEnd::BadMemory:
      return "bad_memory";
    case WalkEnd::UnmappedPc:
      return "unmapped_pc";
    case WalkEnd::NoUnwindInfo:
      return "no_unwind_info";
    case WalkEnd::OtherStack:
      return "other_stack";
    case WalkEnd::BadCfi:
      return "bad_cfi";
    case WalkEnd::Unsupported:
      return "unsupported";
    case WalkEnd::UnknownRegister:
      return "unknown_register";
    case WalkEnd::NoProgress:
      return "no_progress";
    case WalkEnd::FrameLimit:
      break;
  }
  return "frame_limit";
}

}  // namespace sentry_prof::unwind
