// Code that no unwind information covers: what the code itself says, the call that led to it, where
// the process began, the interpreter in whose frame it runs, what stands behind the code's jumps,
// the link register, the frame pointer, in this order, each only as far as it
// can be believed. Of code that no file holds, which may keep frame pointers, only what is sure
// comes before these.
#include "unwind/arm_code.h"
#include "unwind/process_start.h"
#include "unwind/walker.h"
#include "unwind/x86_instruction.h"

namespace sentry_prof::unwind {
namespace {

// kStackReach_bytes (walker.h) where only a frame pointer leads beyond the snapshot. It is no more
// than a guess that the register holds one, or one of this stack (Go's runtime calls from one stack
// to another with the register as it was); frames of functions that are written to be walked so are
// small.
constexpr uint64_t kFramePointerReach_bytes = 64u << 10;  // of what assembly has for it, too

}  // namespace

// A return address that is the first byte of a function, or of code that never returns, behind no
// call: nobody called from here. It was laid out by hand, under the first function of a stack, to
// catch its return (libc's makecontext, Boost's make_fcontext and with it PHP's fibers). A frame
// pointer that is none may lead to any pointer to a function.
bool Walker::is_entered_by_return() {
  return !cursor_.pc_is_exact && !went_by_frame_pointer_ &&
         addresses_.call_behind(cursor_.pc).kind == CallKind::None;
}

// The byte before it is of another function, whose name the frame would have.
Step Walker::ends_at_first_instruction() {
  frames_.last().pc_is_exact = true;
  trail_.restate(frames_.last());
  return ends(WalkEnd::Root);
}

// Code that no file holds, or a file that could not be read, or is none of ELF.
Step Walker::step_without_rows() {
  if (arch_ == Arch::X86_64 && module_->code == nullptr && memory_rules_.code() != nullptr) {
    if (const std::optional<Step> step = step_by_memory_code()) return *step;
  }
  return step_without_cfi({});
}

// JIT compilers mostly keep frame pointers. Two kinds of code leave the register to the code around
// it, so that it may lead past callers: what a program copies, to call through (CPython's
// trampolines for perf), which goes straight to its return, and what HotSpot compiles, which is
// known by how its functions begin. Other code is read as a whole where no frame pointer leads on.
std::optional<Step> Walker::step_by_memory_code() {
  uint32_t work = 0;
  // The rest is for frames that cannot do without: frame pointers lead on without work.
  const bool has_work = work_left_ > kMaxWork / 2;
  const CompactRule* const straight = has_work ? memory_rules_.straight(cursor_.pc, work) : nullptr;
  if (!spend(work)) return ends(WalkEnd::Unsupported);
  if (straight == nullptr) {
    return leave_unknown_code(has_work ? WalkEnd::NoUnwindInfo : WalkEnd::Unsupported);
  }
  const bool may_be_stub = cursor_.pc_is_exact;
  if (const std::optional<Step> step = step_by_code(*straight)) {
    if (may_be_stub) sp_above_stub_ = cursor_.sp;
    return step;
  }
  if (const std::optional<Step> step = step_by_prologue()) return step;
  if (const std::optional<Step> step = step_outside_frame_record(Believed::AlsoMemoryCode)) {
    return step;
  }
  if (frame_pointer_leads_on()) return step_further_in();
  work = 0;
  const CompactRule rule = memory_rules_.whole(cursor_.pc, work);
  if (!spend(work)) return ends(WalkEnd::Unsupported);
  return step_by_code(rule);
}

// Code that no file holds and that no frame pointer leads out of, nor what it says of its return.
std::optional<Step> Walker::step_without_frame_pointer() {
  const bool is_such_code = arch_ == Arch::X86_64 && module_->image == kNoImage &&
                            module_->code == nullptr && !frame_pointer_leads_on();
  if (!is_such_code) return std::nullopt;
  if (const std::optional<Step> step = step_by_row_of_called()) return step;
  const bool may_have_way = memory_rules_.code() != nullptr && !modules_.has_hotspot();
  return may_have_way ? step_past_jumps() : std::nullopt;
}

std::optional<Step> Walker::step_past_jumps() {
  trail_.breaks();  // rests on whether it is due
  uint32_t work = 0;
  const auto way = memory_rules_.past_jumps(cursor_.pc, work);
  if (!way) return std::nullopt;
  if (!spend(work)) return ends(WalkEnd::Unsupported);
  const uint64_t pc = cursor_.pc;
  const std::optional<Step> step = step_by_code(way->rule);
  if (step || way->is_read) memory_rules_.note_past_jumps(pc, step.has_value());
  return step;
}

// Where the code ends below the frame record, that is of a function further out: Mono's compiler
// keeps a frame pointer only where it needs one, Ruby's none, and both are called from code that
// does. (HotSpot's is known otherwise, and its interpreter's way on is not in its code.)
std::optional<Step> Walker::step_further_in() {
  if (modules_.has_hotspot()) return std::nullopt;
  const auto own_way = memory_rules_.own_way(cursor_.pc);
  if (!own_way) return std::nullopt;
  const CompactRule rule = own_way->rule;
  const bool ends_below =
      rule.kind == CompactKind::CodeFromSp && cursor_.sp + as_bytes(rule.cfa_words) <= cursor_.fp;
  if (ends_below) {
    if (const std::optional<Step> step = step_by_code(rule)) return step;
  }
  if (ends_below || !own_way->is_read) {
    trail_.breaks();  // other words, or code that can be read, would have led on
  } else {
    memory_rules_.note_none_further_in(cursor_.pc);
  }
  return std::nullopt;
}

// A leaf that was just called, or is about to return: the frame pointer leads past its caller.
std::optional<Step> Walker::step_outside_frame_record(Believed believed) {
  if (!cursor_.pc_is_exact) return std::nullopt;
  uint32_t work = 0;
  const CompactRule rule = rule_outside_frame_record(*memory_rules_.code(), {cursor_.pc}, work);
  if (!spend(work)) return ends(WalkEnd::Unsupported);
  if (rule.kind != CompactKind::CodeFromSp) return std::nullopt;
  return step_by_code_to(cursor_.sp + as_bytes(rule.cfa_words), rule, believed);
}

// `rule` is what the code says, if it says anything.
Step Walker::step_without_cfi(CompactRule rule) {
  if (const std::optional<Step> step = step_by_code(rule)) return *step;
  if (const std::optional<Step> step = step_by_mark_of_first()) return *step;
  if (const std::optional<Step> step = step_by_function_start(rule)) return *step;
  if (const std::optional<Step> step = step_from_start_up_code()) return *step;
  if (const std::optional<Step> step = step_without_frame_pointer()) return *step;
  return step_by_frame_pointer();
}

// The C library's code that called main, and will not return: musl has no unwind information, and
// any use for the frame pointer. The first call of the process, that of the entry point's code,
// left its return address where the stack begins.
std::optional<Step> Walker::step_from_start_up_code() {
  const bool may_be_start_up = arch_ == Arch::X86_64 && !cursor_.pc_is_exact &&
                               module_->image != kNoImage && !has_unread_image();
  if (!may_be_start_up || has_frame_record()) return std::nullopt;
  trail_.breaks();  // rests on more words than a step remembers
  spend(kMaxStartFrames_words);
  const auto start = process_start_above(stack_, {cursor_.sp});
  if (!start) return std::nullopt;
  const uint64_t slot = start->value - 8;
  if (slot < cursor_.sp) return ends(WalkEnd::Root);
  uint64_t return_address = 0;
  if (!stack_.read_u64({slot}, return_address) || !addresses_.is_behind_call(return_address)) {
    return std::nullopt;
  }
  // Where a call stands between, this is not that code, but what it called.
  if (addresses_.calls_between(stack_, cursor_.sp, slot).count > 0) return std::nullopt;
  trail_.read_return_address(slot, return_address);
  cursor_.fp_is_known = false;
  return step_by_likely(return_address, start->value, FrameOrigin::ProcessStart);
}

// Beside the word that the frame pointer leads to: the return address, if that is a frame record.
std::optional<uint64_t> Walker::word_of_frame_record() {
  uint64_t word = 0;
  const bool is_read = cursor_.fp_is_known && cursor_.fp >= cursor_.sp && cursor_.fp % 8 == 0 &&
                       stack_.read_u64({cursor_.fp + 8}, word);
  return is_read ? std::optional(word) : std::nullopt;
}

bool Walker::has_frame_record() {
  const std::optional<uint64_t> word = word_of_frame_record();
  return word && addresses_.is_behind_call(*word);
}

// Whether step_by_frame_pointer() finds code, or the end of a copy that was cut. Behind a call or
// not: HotSpot's interpreter lays out return addresses by hand.
bool Walker::frame_pointer_leads_on() {
  if (const std::optional<uint64_t> word = word_of_frame_record()) {
    if (addresses_.module_at(*word - 1) != nullptr) return true;
    trail_.breaks();  // another word there would have led on
    return false;
  }
  return cursor_.fp_is_known && stack_.may_go_on() && !has_left_snapshot_ &&
         stack_.is_beyond_end({cursor_.fp + 8}) &&
         cursor_.fp - cursor_.sp <= kFramePointerReach_bytes;
}

// The leaf's row leads to where no code is: assembly has rows that do not hold all along (one for
// the whole of LuaJIT's interpreter, the functions that it calls included).
bool Walker::goes_on_by_code_of_leaf() {
  const bool is_called_by_row =
      frames_.count() == 1 && cursor_.origin == FrameOrigin::Cfi && first_ == FrameOrigin::Leaf;
  return is_called_by_row && arch_ == Arch::X86_64 && step_by_code_of_leaf();
}

bool Walker::step_by_code_of_leaf() {
  trail_.breaks();  // rests on more words than a step remembers
  start_at_first();
  module_ = addresses_.module_at(cursor_.pc);
  uint32_t work = 0;
  const CompactRule rule =
      was_just_called()
          ? CompactRule{.kind = CompactKind::CodeFromSp, .cfa_words = 1, .return_address_words = -1}
          : rule_of_code(to_link({cursor_.pc}, module_->bias), work);
  const bool goes_on = spend(work) && step_by_code(rule) == Step::Continues;
  if (!goes_on) module_ = nullptr;
  return goes_on;
}

bool Walker::was_just_called() {
  uint64_t return_address = 0;
  if (!stack_.read_u64({cursor_.sp}, return_address)) return false;
  const CallSite call = addresses_.call_behind(return_address);
  return call.kind == CallKind::Direct && call.target(return_address) == cursor_.pc;
}

// The leaf's row may not hold (OCaml's caml_raise_exn is said to have popped its return address at
// its `ret`). Where it led to a zero, and does hold, its code leads there, too.
Step Walker::ends_unless_code_leads_on(WalkEnd end) {
  const bool goes_on = cursor_.is_leaf && arch_ == Arch::X86_64 && step_by_code_of_leaf();
  if (goes_on) return Step::Continues;
  return end_ == WalkEnd::StackTruncated ? Step::Ends : ends(end);  // the code led out of the copy
}

std::optional<Step> Walker::step_by_code(CompactRule rule) {
  switch (rule.kind) {
    case CompactKind::CodeFromSp:
      return step_by_code_to(cursor_.sp + as_bytes(rule.cfa_words), rule);
    case CompactKind::CodeFromFp:
      if (!cursor_.fp_is_known) return std::nullopt;
      return step_by_code_to(cursor_.fp + as_bytes(rule.cfa_words), rule);
    case CompactKind::CodeFromRegister:
      return step_from_register(rule);
    case CompactKind::CodeFromWordAtSp:
      return step_from_word(cursor_.sp, rule);
    case CompactKind::CodeFromWordAtFp:
      if (!cursor_.fp_is_known) return std::nullopt;
      return step_from_word(cursor_.fp, rule);
    default:
      return std::nullopt;
  }
}

std::optional<Step> Walker::step_from_register(CompactRule rule) {
  const unsigned number = rule.base_register();
  const bool is_kept = (kX86KeptRegisters >> number & 1) != 0;
  if (!is_kept && !cursor_.pc_is_exact) return std::nullopt;
  // `registers_` are the leaf's in the fast walk.
  const bool may_be_known = mode_ == Mode::Full || cursor_.pc_is_exact;
  if (!may_be_known || !registers_.is_known(number)) {
    // Of code that leaves the frame pointer alone it is the caller's own: that one would be
    // skipped.
    if (rule.fp != CompactFp::Same || module_->image == kNoImage) return std::nullopt;
    return ends(may_be_known ? WalkEnd::NoUnwindInfo : WalkEnd::UnknownRegister);
  }
  rule.return_address_words = -1;
  return step_by_code_to(registers_.get(number) + as_bytes(rule.cfa_words), rule);
}

std::optional<Step> Walker::step_from_word(uint64_t base, CompactRule rule) {
  trail_.breaks();  // rests on more words than a step remembers
  const RuntimeAddress place{base + rule.word_bytes()};
  // It was not put there yet; nor does a frame pointer say where the stack was before.
  if (place.value < cursor_.sp) return ends(WalkEnd::NoUnwindInfo);
  uint64_t word = 0;
  if (!stack_.read_u64(place, word)) {
    const bool is_near = place.value - cursor_.sp <= kFramePointerReach_bytes;
    return is_near && stack_.is_beyond_end(place) ? std::optional(ends_outside(place))
                                                  : std::nullopt;
  }
  rule.return_address_words = -1;
  return step_by_code_to(word + as_bytes(rule.cfa_words), rule);
}

// The rule may be wrong (rule_from_code.h), so what it leads to has to be one of `believed`.
std::optional<Step> Walker::step_by_code_to(uint64_t cfa, CompactRule rule, Believed believed) {
  const uint64_t slot = cfa + as_bytes(rule.return_address_words);
  if (slot < cursor_.sp || cfa < slot) return std::nullopt;
  uint64_t return_address = 0;
  const bool is_read = stack_.read_u64({slot}, return_address);
  // Where a frame pointer leads that far, it is none, or step_by_frame_pointer() says so.
  const bool is_surely_stack =
      rule.kind == CompactKind::CodeFromSp ||
      (rule.kind != CompactKind::CodeFromFp && slot - cursor_.sp <= kFramePointerReach_bytes);
  if (!is_read && is_surely_stack && stack_.is_beyond_end({slot})) return ends_outside({slot});
  const bool is_believed =
      is_read &&
      (addresses_.is_behind_call(return_address) ||
       (believed == Believed::AlsoMemoryCode && addresses_.leads_to_memory_code(return_address)));
  if (!is_believed) {
    trail_.breaks();  // another word there would have led on
    return std::nullopt;
  }
  trail_.read_return_address(slot, return_address);
  restore_frame_pointer(rule, cfa);
  return step_by_likely(return_address, cfa, FrameOrigin::Code);
}

void Walker::restore_frame_pointer(CompactRule rule, uint64_t cfa) {
  switch (rule.fp) {
    case CompactFp::Same:
      return;
    case CompactFp::Saved:
      return load_frame_pointer(cfa + as_bytes(rule.fp_words));
    case CompactFp::SavedFromSp:
      return load_frame_pointer(cursor_.sp + as_bytes(rule.fp_words));
    case CompactFp::SavedFromFp:
      if (cursor_.fp_is_known) load_frame_pointer(cursor_.fp + as_bytes(rule.fp_words));
      return;
    case CompactFp::Unknown:
      cursor_.fp_is_known = false;
  }
}

Step Walker::step_by_likely(uint64_t return_address, uint64_t sp, FrameOrigin origin) {
  move_to_caller(return_address, sp, origin);
  registers_ = {};  // which others the frame saved, and where, is not known
  return Step::Continues;
}

// [fp] is the caller's frame pointer and [fp + 8] the return address, if the code keeps frame
// pointers at all. Nothing says whether it does, nor whether the leaf has set its own up yet
// (else its caller is skipped), so only a return address in executable memory is believed.
Step Walker::step_by_frame_pointer() {
  if (link_register_leads_out()) {
    const Step step = step_to_link(cursor_.sp, FrameOrigin::LinkRegister);
    forget_what_calls_overwrite();
    return step;
  }
  if (!cursor_.fp_is_known) return ends(WalkEnd::UnknownRegister);
  const uint64_t fp = cursor_.fp;
  if (fp < cursor_.sp || fp % 8 != 0) return ends(WalkEnd::NoUnwindInfo);
  uint64_t return_address = 0;
  uint64_t caller_fp = 0;
  if (!stack_.read_u64({fp}, caller_fp)) return ends_outside_frame_pointer({fp});
  if (!stack_.read_u64({fp + 8}, return_address)) return ends_outside_frame_pointer({fp + 8});
  trail_.read_saved_fp(fp, caller_fp);
  trail_.read_return_address(fp + 8, return_address);
  return_address = addresses_.without_signature(return_address);
  if (addresses_.module_at(return_address - 1) == nullptr) return ends(WalkEnd::NoUnwindInfo);
  cursor_.fp = caller_fp;
  went_by_frame_pointer_ = true;
  move_to_caller(return_address, fp + 16, FrameOrigin::FramePointer);
  // x86-64 pushes the two words first of all, aarch64 has them anywhere in the frame.
  cursor_.sp_is_known = arch_ == Arch::X86_64;
  registers_ = {};  // which registers the frame saved, and where, is not known
  return Step::Continues;
}

// A frame pointer of zero is how a thread's first frame marks itself where it has no CFI (x86-64
// psABI, section 3.4.1; AAPCS64, section 6.4.6); musl's and Go's do. In code that keeps none it is
// any number, but there its callers' calls stand above. If there is but one, by a pointer, then
// that is the caller's: of musl's threads the first function is one that calls the next. The leaf
// may have any use for the register, and so has a JIT compiler's code, unless a frame record had
// the zero.
std::optional<Step> Walker::step_by_mark_of_first() {
  const bool has_mark = cursor_.fp_is_known && cursor_.fp == 0 && !cursor_.pc_is_exact;
  if (!has_mark || has_unread_image()) return std::nullopt;
  const bool is_of_record = cursor_.origin == FrameOrigin::FramePointer;
  // aarch64's compilers have no other use for the register.
  if (is_of_record && (module_->image == kNoImage || arch_ == Arch::Aarch64)) {
    return ends(WalkEnd::Root);
  }
  if (module_->image == kNoImage) return std::nullopt;
  if (has_left_snapshot_) return ends_outside({cursor_.sp});  // nothing of that stack is there
  trail_.breaks();  // rests on more words than a step remembers
  const CallsAbove calls = addresses_.calls_between(stack_, cursor_.sp, UINT64_MAX);
  const bool may_have_others = stack_.goes_on();  // above the copy
  if (calls.count == 0) {
    if (may_have_others) return ends_outside({stack_.end()});
    const std::optional<RuntimeAddress> gap = stack_.first_gap();
    return gap ? ends_outside(*gap) : ends(WalkEnd::Root);
  }
  if (calls.count > 1 || calls.kind != CallKind::Indirect || may_have_others) return std::nullopt;
  const Step step =
      step_by_likely(calls.return_address, calls.slot + sizeof(uint64_t), FrameOrigin::Code);
  // x86-64 pushes the return address last of all, aarch64 has it anywhere in the frame.
  cursor_.sp_is_known = arch_ == Arch::X86_64;
  return step;
}

// An image of which nothing is known but its name may have CFI, and any use for the register.
bool Walker::has_unread_image() const {
  return module_->image != kNoImage && module_->cfi == nullptr;
}

// Whether the link register surely leads to the caller. Code that makes no call has its return
// address there (PLT entries, assembly); in other code it is left over from the last call and
// leads to that code itself, which has no CFI. So it must lead to another module, or to code with
// CFI, or behind the call of what runs.
bool Walker::link_register_leads_out() {
  if (!knows_link_register()) return false;
  const uint64_t return_address =
      addresses_.without_signature(registers_.get(names_.link_register));
  const uint64_t pc = return_address - 1;
  const Module* to = modules_.find({pc});
  if (to == nullptr) return false;
  const bool is_same = to == module_ || (to->image == module_->image && to->image != kNoImage);
  return !is_same || addresses_.has_cfi_at(*to, to_link({pc}, to->bias)) ||
         is_called_by_link(return_address);
}

// Of aarch64, over a step that no row describes (AAPCS64, section 6.1.1).
void Walker::forget_what_calls_overwrite() {
  constexpr unsigned kLastOverwritten = 18;
  for (unsigned reg = 0; reg <= kLastOverwritten; ++reg) registers_.forget(reg);
  registers_.forget(names_.link_register);
}

// Between where the call went to and the leaf's pc nothing keeps the link register, as code has to
// before it calls: so nothing was called since.
bool Walker::is_called_by_link(uint64_t return_address) {
  const CallSite call = addresses_.call_behind(return_address);
  if (call.kind != CallKind::Direct || module_->code == nullptr) return false;
  uint32_t work = 0;
  const bool has_not_called =
      keeps_no_link_register(*module_->code, to_link({call.target(return_address)}, module_->bias),
                             to_link({cursor_.pc}, module_->bias), work);
  return spend(work) && has_not_called;
}

// A frame pointer close above the snapshot is the stack's, which was cut; else it is no frame
// pointer.
Step Walker::ends_outside_frame_pointer(RuntimeAddress address) {
  const bool is_near = address.value - cursor_.sp <= kFramePointerReach_bytes;
  ends_outside(address);
  return ends(is_near && end_ == WalkEnd::StackTruncated ? end_ : WalkEnd::NoUnwindInfo);
}

}  // namespace sentry_prof::unwind
