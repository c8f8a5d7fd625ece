// Code that no unwind information covers: the word at the stack pointer, the link register, the
// frame pointer, in this order, each only as far as it can be believed.
#include "unwind/walker.h"

namespace sentry_prof::unwind {
namespace {

// kStackReach_bytes (walker.h) where only a frame pointer leads beyond the snapshot. It is no more
// than a guess that the register holds one, or one of this stack (Go's runtime calls from one stack
// to another with the register as it was); frames of functions that are written to be walked so are
// small.
constexpr uint64_t kFramePointerReach_bytes = 64u << 10;

// How far into the code that a call leads to the leaf may be, if it is to be what was called.
// Functions without unwind information and without a frame are small: libc's clone, the longest
// among those of Debian's C start-up code, PLTs and libc, has 200 bytes.
constexpr uint64_t kLongestFrameless_bytes = 4096;

// x86-64 psABI, section 3.2.2: at a function's entry the stack pointer is this much above a
// multiple of sixteen.
constexpr uint64_t kEntryAlignment = 8;

}  // namespace

// A return address that is the first byte of a function, behind no call: nobody called from here.
// It was laid out by hand, under the first function of a stack, to catch its return (libc's
// makecontext). A frame pointer that is none may lead to any pointer to a function.
bool Walker::is_entered_by_return() {
  return !cursor_.pc_is_exact && !went_by_frame_pointer_ &&
         call_behind(cursor_.pc).kind == CallKind::None;
}

Step Walker::step_without_cfi() {
  const bool may_be_frameless =
      cursor_.pc_is_exact && arch_ == Arch::X86_64 && module_->image != kNoImage;
  uint64_t top = 0;
  if (may_be_frameless && stack_.read_u64({cursor_.sp}, top) && is_return_address(top)) {
    return step_to_stack_top(top);
  }
  return step_by_frame_pointer();
}

// Code without unwind information is mostly small and has no frame (PLT entries, start-up code,
// the ends of libc's clone): its frame pointer is its caller's. If the word at the stack pointer
// is behind a call of just this code, it is the return address. Calls by pointer, through a PLT
// and tail jumps leave less to compare: then the stack pointer must be where a function's entry
// has it (leftovers of earlier calls are elsewhere once a frame is set up), and the frame pointer
// not lead to a call of this code.
bool Walker::is_return_address(uint64_t top) {
  const CallSite call = call_behind(top);
  if (call.kind == CallKind::None || call.kind == CallKind::Unknown) return false;
  if (leads_here(call, top)) return true;
  return cursor_.sp % 16 == kEntryAlignment && !has_frame_of_its_own();
}

bool Walker::has_frame_of_its_own() {
  uint64_t return_address = 0;
  return cursor_.fp_is_known && cursor_.fp >= cursor_.sp && cursor_.fp % 8 == 0 &&
         stack_.read_u64({cursor_.fp + 8}, return_address) &&
         leads_here(call_behind(return_address), return_address);
}

bool Walker::leads_here(CallSite call, uint64_t return_address) const {
  if (call.kind != CallKind::Direct) return false;
  const uint64_t inside = cursor_.pc - target_of(call, return_address);
  return inside < kLongestFrameless_bytes;  // wraps to a huge value below the target
}

uint64_t Walker::target_of(CallSite call, uint64_t return_address) {
  return return_address + static_cast<uint64_t>(int64_t{call.target_offset});
}

// None also for a direct call that leads to no code: those bytes are something else.
CallSite Walker::call_behind(uint64_t return_address) {
  const Module* module = module_at(return_address - 1);
  if (module == nullptr) return {CallKind::None};
  uint32_t work = 0;
  const CallSite call = call_sites_.before(*module, return_address, work);
  if (!spend(work)) return {};
  const bool leads_nowhere =
      call.kind == CallKind::Direct && modules_.find({target_of(call, return_address)}) == nullptr;
  return leads_nowhere ? CallSite{CallKind::None} : call;
}

// As by the row that every function's first instruction has.
Step Walker::step_to_stack_top(uint64_t return_address) {
  Row row;
  row.cfa_kind = CfaKind::RegisterOffset;
  row.cfa_register = names_.stack_pointer;
  row.cfa_offset = 8;
  row.return_address_register = names_.program_counter;
  row.rules[names_.program_counter] = {.kind = RuleKind::AtCfaOffset, .offset = -8};
  put_cursor_into_registers();
  saw_return_address(cursor_.sp, return_address);
  const RowResult result = apply_row(row, arch_, {.registers = registers_}, stack_);
  const Step step = take_registers(result.caller, false);
  cursor_.origin = FrameOrigin::StackTop;
  return step;
}

// [fp] is the caller's frame pointer and [fp + 8] the return address, if the code keeps frame
// pointers at all. Nothing says whether it does, nor whether the leaf has set its own up yet
// (else its caller is skipped), so only a return address in executable memory is believed.
Step Walker::step_by_frame_pointer() {
  if (link_register_leads_out()) return step_to_link(cursor_.sp, FrameOrigin::LinkRegister);
  if (!cursor_.fp_is_known) return ends(WalkEnd::UnknownRegister);
  const uint64_t fp = cursor_.fp;
  // How a thread's first frame marks itself where it has no CFI (x86-64 psABI, section 3.4.1);
  // musl's and Go's do. The leaf may have any use for the register.
  if (fp == 0 && !cursor_.pc_is_exact) {
    return ends(has_unread_image() ? WalkEnd::NoUnwindInfo : WalkEnd::Root);
  }
  if (fp < cursor_.sp || fp % 8 != 0) return ends(WalkEnd::NoUnwindInfo);
  uint64_t return_address = 0;
  uint64_t caller_fp = 0;
  if (!stack_.read_u64({fp}, caller_fp)) return ends_outside_frame_pointer({fp});
  if (!stack_.read_u64({fp + 8}, return_address)) return ends_outside_frame_pointer({fp + 8});
  trail_.read_saved_fp(fp, caller_fp);
  saw_return_address(fp + 8, return_address);
  return_address = without_signature(return_address);
  if (module_at(return_address - 1) == nullptr) return ends(WalkEnd::NoUnwindInfo);
  cursor_.fp = caller_fp;
  went_by_frame_pointer_ = true;
  move_to_caller(return_address, fp + 16, FrameOrigin::FramePointer);
  // x86-64 pushes the two words first of all, aarch64 has them anywhere in the frame.
  cursor_.sp_is_known = arch_ == Arch::X86_64;
  registers_ = {};  // which registers the frame saved, and where, is not known
  return Step::Continues;
}

// An image of which nothing is known but its name may have CFI, and any use for the register.
bool Walker::has_unread_image() const {
  return module_->image != kNoImage && module_->cfi == nullptr;
}

// Whether the link register surely leads to the caller. Code that makes no call has its return
// address there (PLT entries, assembly); in other code it is left over from the last call and
// leads to that code itself, which has no CFI. So it must lead to another module, or to code with
// CFI.
bool Walker::link_register_leads_out() {
  if (!knows_link_register()) return false;
  const uint64_t pc = without_signature(registers_.get(names_.link_register)) - 1;
  const Module* to = modules_.find({pc});
  if (to == nullptr) return false;
  const bool is_same = to == module_ || (to->image == module_->image && to->image != kNoImage);
  return !is_same || has_cfi_at(*to, to_link({pc}, to->bias));
}

bool Walker::has_cfi_at(const Module& module, LinkAddress pc) {
  if (module.cfi == nullptr) return false;
  Row row;
  const RowStatus status = module.cfi->row_at(pc, row);
  spend(row.work);
  return status == RowStatus::Found;
}

// A frame pointer close above the snapshot is the stack's, which was cut; else it is no frame
// pointer.
Step Walker::ends_outside_frame_pointer(RuntimeAddress address) {
  const bool is_near = address.value - cursor_.sp <= kFramePointerReach_bytes;
  ends_outside(address);
  return ends(is_near && end_ == WalkEnd::StackTruncated ? end_ : WalkEnd::NoUnwindInfo);
}

}  // namespace sentry_prof::unwind
