// What HotSpot compiles: its code keeps no frame pointer. Its interpreter does, and calls that code
// with a return address laid out by hand, behind no call. Called by it, the interpreter moves the
// stack pointer to make room for its local variables, and keeps in the word below its frame record
// where it was (frame::interpreter_frame_sender_sp_offset).
#include "unwind/prologue.h"
#include "unwind/walker.h"

#include <optional>

namespace sentry_prof::unwind {
namespace {

constexpr uint64_t kFrameRecord_bytes = 16;  // the caller's frame pointer and the return address
// Of the interpreter's frames; most methods have some ten words of them.
constexpr uint64_t kMaxLocals_bytes = 16u << 10;

bool is_sp_above(uint64_t sp, uint64_t from, uint64_t reach_bytes) {
  return sp >= from && sp - from <= reach_bytes && sp % 8 == 0;
}

}  // namespace

std::optional<Step> Walker::step_by_prologue() {
  if (!modules_.has_hotspot()) return std::nullopt;
  uint32_t work = 0;
  const Prologue prologue =
      memory_rules_.prologue(begin_of_memory_code(), cursor_.pc, cursor_.pc_is_exact, work);
  if (!spend(work)) return ends(WalkEnd::Unsupported);
  const bool is_in_frame = prologue.kind == Prologue::Kind::Frame;
  const bool has_rule = is_in_frame || prologue.kind == Prologue::Kind::Edge;
  // A function's frame could be that of a stub behind it by chance only; the call that led to a
  // stub is one for sure.
  if (const auto step = step_from_called_stub(prologue.begin)) return step;
  if (has_rule) {
    if (const auto step = step_by_frame(prologue.rule)) return step;
  }
  if (is_in_frame) {
    if (const auto step = step_from_entered_stub()) return step;
    if (const auto step = step_over_pushed_words(prologue.rule)) return step;
  }
  if (has_rule && !prologue.keeps_frame_pointer) return ends(WalkEnd::NoUnwindInfo);
  if (has_rule || prologue.kind == Prologue::Kind::FramePointerKept) return std::nullopt;
  // Stubs that the virtual machine calls by itself have no frame (ICache's flush_icache_stub).
  if (!sp_of_interpreter()) {
    if (const auto step = step_outside_frame_record(Believed::BehindCalls)) return step;
  }
  return leave_unknown_code(WalkEnd::NoUnwindInfo);
}

std::optional<Step> Walker::step_by_frame(const CompactRule& rule) {
  const uint64_t cfa_above_sp = as_bytes(rule.cfa_words);
  if (const std::optional<uint64_t> sp = sp_kept_by_callee(cfa_above_sp)) {
    const auto step = step_by_code_to(*sp + cfa_above_sp, rule, Believed::AlsoMemoryCode);
    if (step) return step;
  }
  return step_by_code_to(cursor_.sp + cfa_above_sp, rule, Believed::AlsoMemoryCode);
}

// Between its calls a function may have pushed registers: where it looks for an interface among
// those of a class, up to three (MacroAssembler::check_klass_subtype_slow_path). The arguments of
// some stubs are pushed, too (Runtime1::slow_subtype_check_id: two). Where a return address is
// among the words, it rather is a stub of which nothing is known.
std::optional<Step> Walker::step_over_pushed_words(const CompactRule& rule) {
  constexpr uint64_t kMaxPushedWords = 3;
  if (!cursor_.pc_is_exact && cursor_.sp != sp_above_stub_) return std::nullopt;
  for (uint64_t pushed_words = 1; pushed_words <= kMaxPushedWords; ++pushed_words) {
    const uint64_t sp = cursor_.sp + 8 * pushed_words;
    const uint64_t cfa = sp + as_bytes(rule.cfa_words);
    uint64_t pushed = 0;
    uint64_t return_address = 0;
    const bool is_read =
        stack_.read_u64({sp - 8}, pushed) && stack_.read_u64({cfa - 8}, return_address);
    if (!is_read || addresses_.is_behind_call(pushed)) return std::nullopt;
    if (const auto step = step_by_code_to(cfa, rule, Believed::AlsoMemoryCode)) return step;
  }
  return std::nullopt;
}

// Stubs that compiled code calls have no frame, and some push registers: the call leads to behind
// where the last function before the pc began, if any is near.
std::optional<Step> Walker::step_from_called_stub(LinkAddress begin) {
  // Runtime1::slow_subtype_check_id has 5, of JDK 25 9.
  constexpr int16_t kMaxStubWords = 16;
  if (!cursor_.pc_is_exact) return std::nullopt;
  for (int16_t words = 1; words <= kMaxStubWords; ++words) {
    uint64_t return_address = 0;
    if (!stack_.read_u64({cursor_.sp + as_bytes(words) - 8}, return_address)) break;
    if (called_stub_here(return_address, begin)) return step_over_stub(words);
  }
  return std::nullopt;
}

// A jump may have led on from what was called (InlineCacheBuffer). No function that has its frame
// keeps a return address at the end of it.
std::optional<Step> Walker::step_from_entered_stub() {
  uint64_t return_address = 0;
  const bool is_entered = cursor_.pc_is_exact && stack_.read_u64({cursor_.sp}, return_address) &&
                          addresses_.is_behind_call(return_address);
  return is_entered ? step_over_stub(1) : std::nullopt;
}

std::optional<Step> Walker::step_over_stub(int16_t words) {
  sp_above_stub_ = cursor_.sp + as_bytes(words);
  return step_by_code_to(
      sp_above_stub_,
      {.kind = CompactKind::CodeFromSp, .cfa_words = words, .return_address_words = -1});
}

bool Walker::called_stub_here(uint64_t return_address, LinkAddress begin) {
  // Tables of interfaces are searched in some 100 bytes (VtableStubs::create_itable_stub).
  constexpr uint64_t kLongestStub_bytes = 1024;
  const CallSite call = addresses_.call_behind(return_address);
  const uint64_t target = call.target(return_address);
  return call.kind == CallKind::Direct && target > begin.value && target <= cursor_.pc &&
         cursor_.pc - target < kLongestStub_bytes;
}

// The frame pointer may lead on, but not in what a compiler makes that keeps none: there it is that
// of a caller farther out, or no frame pointer.
std::optional<Step> Walker::leave_unknown_code(WalkEnd end) {
  trail_.breaks();  // another walk may know it, and go on elsewhere
  if (!modules_.has_hotspot()) return std::nullopt;
  const std::optional<uint64_t> callers_own_sp = sp_of_interpreter();
  if (!callers_own_sp) return ends(work_left_ > 0 ? end : WalkEnd::Unsupported);
  const bool may_be_called =
      cursor_.pc_is_exact && *callers_own_sp != 0 && *callers_own_sp != cursor_.sp;
  if (!may_be_called || has_just_returned()) return std::nullopt;
  // The frame is not the leaf's, which has none yet. (Or the interpreter's, in the moment before it
  // jumps: then it is there twice.)
  const auto step = step_by_code_to(
      cursor_.sp + 8, {.kind = CompactKind::CodeFromSp, .cfa_words = 1, .return_address_words = -1},
      Believed::AlsoMemoryCode);
  return step ? step : ends(end);
}

// The interpreter, with the return address still on top of the stack.
bool Walker::has_just_returned() {
  constexpr uint64_t kFewInstructions_bytes = 16;
  uint64_t return_address = 0;
  return stack_.read_u64({cursor_.sp}, return_address) && cursor_.pc >= return_address &&
         cursor_.pc - return_address < kFewInstructions_bytes;
}

// None if the frame pointer is not of the interpreter, or not of that which called what the walk
// came from. It keeps in the word below where its caller's stack pointer was, and in the next where
// its own is in a call (frame::interpreter_frame_last_sp_offset), from JDK 22 on in words above the
// frame pointer; 0 if it called nothing of Java's.
std::optional<uint64_t> Walker::sp_of_interpreter() {
  if (!cursor_.fp_is_known || cursor_.fp < cursor_.sp || cursor_.fp % 8 != 0) return std::nullopt;
  uint64_t callers_sp = 0;
  uint64_t own_sp = 0;
  const bool is_read =
      stack_.read_u64({cursor_.fp - 8}, callers_sp) && stack_.read_u64({cursor_.fp - 16}, own_sp);
  if (!is_read || !is_sp_above(callers_sp, cursor_.fp + kFrameRecord_bytes, kMaxLocals_bytes)) {
    return std::nullopt;
  }
  if (own_sp == 0 || is_sp_of_call(own_sp)) return own_sp;
  own_sp = cursor_.fp + 8 * own_sp;
  return is_sp_of_call(own_sp) ? std::optional(own_sp) : std::nullopt;
}

// Between the cursor and the interpreter's stack pointer are arguments only: no frame that has kept
// its frame pointer, as compiled functions do that leave it alone.
bool Walker::is_sp_of_call(uint64_t sp) {
  constexpr uint64_t kMaxArguments_bytes = 4096;  // 255 words, and what aligns them
  if (!is_sp_above(sp, cursor_.sp, kMaxArguments_bytes)) return false;
  if (!spend(static_cast<uint32_t>((sp - cursor_.sp) / 8))) return false;
  for (uint64_t place = cursor_.sp; place + kFrameRecord_bytes <= sp; place += 8) {
    uint64_t fp = 0;
    uint64_t return_address = 0;
    const bool is_read =
        stack_.read_u64({place}, fp) && stack_.read_u64({place + 8}, return_address);
    if (!is_read || (fp == cursor_.fp && addresses_.leads_to_memory_code(return_address)))
      return false;
  }
  return true;
}

// Where the mappings begin that lie one beside the other, as far as it matters.
RuntimeAddress Walker::begin_of_memory_code() const {
  RuntimeAddress begin = module_->begin;
  while (begin < RuntimeAddress{cursor_.pc} && cursor_.pc - begin.value < kPrologueReach_bytes) {
    const Module* const before = modules_.find({begin.value - 1});
    if (before == nullptr || before->image != kNoImage) break;
    begin = before->begin;
  }
  return begin;
}

// None if that is where the frame record ends anyway, or the frame would lie beyond the copy.
std::optional<uint64_t> Walker::sp_kept_by_callee(uint64_t cfa_above_sp) {
  if (cursor_.origin != FrameOrigin::FramePointer) return std::nullopt;
  trail_.breaks();  // rests on more words than a step remembers
  uint64_t sp = 0;
  uint64_t return_address = 0;
  const uint64_t record = cursor_.sp - kFrameRecord_bytes;
  if (!stack_.read_u64({record - 8}, sp)) return std::nullopt;
  const bool is_kept = sp > cursor_.sp && sp - cursor_.sp <= kMaxLocals_bytes && sp % 8 == 0;
  const bool has_frame = is_kept && stack_.read_u64({sp + cfa_above_sp - 8}, return_address);
  return has_frame ? std::optional(sp) : std::nullopt;
}

}  // namespace sentry_prof::unwind
