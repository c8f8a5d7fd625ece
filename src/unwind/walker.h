// The walk from frame to frame by compact rules: the path that nearly every frame takes, kept where
// it can be inlined. What rules cannot say is in walk_by_whole_row.cpp, code without unwind
// information in walk_without_cfi.cpp and walk_by_*.cpp.
#pragma once

#include "unwind/code_facts.h"
#include "unwind/compact_rule.h"
#include "unwind/cursor.h"
#include "unwind/full_row.h"
#include "unwind/function_search.h"
#include "unwind/kept_frames.h"
#include "unwind/return_addresses.h"
#include "unwind/rule_from_code.h"
#include "unwind/walk.h"
#include "unwind/walk_trail.h"

#include <algorithm>
#include <optional>
#include <span>

namespace sentry_prof::unwind {

// A word this far above the end of the snapshot may still be this stack's, which was cut: a frame
// seldom exceeds the default size of a stack (8 MiB, RLIMIT_STACK). Farther away is elsewhere.
inline constexpr uint64_t kStackReach_bytes = 16u << 20;

// Of code that takes this long to read (1,000 instructions) the stretch is remembered. What most
// functions of compilers take is read afresh from each pc, which is nearer to the truth.
inline constexpr uint32_t kDearCodeWork = 4096;

// A row that fits no compact rule is worked out for every sample, so it has to be cheap. Real ones
// (PLT entries, signal frames, realigned stacks) take below 1,000.
inline constexpr uint32_t kMaxUncachedWork = 1u << 14;

// How far above the stack pointer the stack is asked for ahead. Of 0, 1, 2, 3 and 4 KiB this took
// the least time with stacks that were not in the cache (140, 74, 83, 90, 71 ns a frame without,
// 75, 55, 49, 69, 55 with the memory of the last walk; bench/unwind_bench.cpp).
inline constexpr uint64_t kPrefetch_bytes = 2048;
inline constexpr uint64_t kCacheLine_bytes = 64;

// Outcome of one step from a frame to its caller.
enum class Step : uint8_t { Continues, Ends };

// Fast keeps pc, sp and fp only; Full keeps all registers, at the price of a whole row each frame.
enum class Mode : uint8_t { Fast, Full };

// What a source of rows has for a frame.
struct FrameRow {
  RowStatus status = RowStatus::NoCfi;
  bool begins_at_exact_pc = false;  // a landing pad, a signal return: the pc is no return address
  bool is_before_function = false;  // no row, but the next byte has one
};

// One walk. Refers to all that it is given.
class Walker {
 public:
  Walker(Arch arch, const Registers& leaf, const StackSnapshot& stack, const ModuleMap& modules,
         RuleCache& cache, CodeFacts& code_facts, UnwinderStats& stats,
         std::span<WalkedFrame> frames, WalkTrail& trail, uint32_t& work_left)
      : arch_(arch),
        names_(arch_registers(arch)),
        leaf_(leaf),
        stack_(stack),
        modules_(modules),
        cache_(cache),
        memory_rules_(code_facts.memory_rules),
        stretches_(code_facts.stretches),
        vain_searches_(code_facts.vain_searches),
        stats_(stats),
        frames_(frames),
        trail_(trail),
        work_left_(work_left),
        addresses_(arch, modules, code_facts, work_left) {}

  // `first`: how the first frame was found. But for Leaf its pc is a return address.
  Walk run(Mode mode, FrameOrigin first) {
    first_ = first;
    start(mode);
    do {
      if (!enter_frame() || knows_the_rest()) break;
    } while (step() == Step::Continues);
    return walk();
  }

  // Behind run(): goes on as the thread's last whole walk did.
  Walk join() {
    const std::span<const WalkStep> rest = trail_.beyond_same_frames(room_for_frames());
    if (rest.empty()) return walk();
    for (size_t i = rest.size(); i-- > 0;) frames_.add(rest[i].frame).is_joined = true;
    end_ = WalkEnd::Root;
    return walk();
  }

 private:
  Walk walk() {
    return {.frames = frames_.in_order(),
            .end = end_,
            .missing = missing_,
            .left_frame_pointer = left_frame_pointer_,
            .steps = trail_.steps(),
            .frames_left_out = frames_.left_out()};
  }

  size_t room_for_frames() const { return kMaxWalkedFrames - frames_.count(); }

  void start(Mode mode) {
    mode_ = mode;
    trail_.restart(mode == Mode::Fast);
    start_at_first();
  }

  void start_at_first() {
    const bool is_leaf = first_ == FrameOrigin::Leaf;
    registers_ = leaf_;
    cursor_ = {.pc = leaf_.get(names_.program_counter),
               .sp = leaf_.get(names_.stack_pointer),
               .fp = leaf_.get(names_.frame_pointer),
               .fp_is_known = leaf_.is_known(names_.frame_pointer),
               .pc_is_exact = is_leaf,
               .is_leaf = is_leaf,
               .origin = first_};
  }

  Step ends(WalkEnd end) {
    end_ = end;
    return Step::Ends;
  }

  // Notes the frame at the cursor. False if there is none, or no room for it.
  bool enter_frame() {
    module_ = addresses_.module_at(cursor_.lookup_pc());
    if (module_ == nullptr && goes_on_by_code_of_leaf()) {
      module_ = addresses_.module_at(cursor_.lookup_pc());
    }
    if (module_ == nullptr) {
      end_ = WalkEnd::UnmappedPc;
      return false;
    }
    if (room_for_frames() == 0) {
      end_ = WalkEnd::FrameLimit;
      return false;
    }
    const bool has_image = module_->image != kNoImage;
    const WalkedFrame& frame =
        frames_.add({.image = module_->image,
                     .origin = cursor_.origin,
                     .pc_is_exact = cursor_.pc_is_exact,
                     .pc = has_image ? to_link({cursor_.pc}, module_->bias).value : cursor_.pc});
    if (!cursor_.pc_is_exact) trail_.enter(frame, state());
    return true;
  }

  FrameState state() const {
    return {.pc = cursor_.pc,
            .sp = cursor_.sp,
            .fp = cursor_.fp_is_known ? cursor_.fp : 0,
            .fp_is_known = cursor_.fp_is_known,
            .sp_is_known = cursor_.sp_is_known,
            .came_by_frame_pointer = went_by_frame_pointer_};
  }

  // Whether the thread's last walk came through the frame at the cursor, and nothing has changed
  // from there outward.
  bool knows_the_rest() {
    if (cursor_.pc_is_exact) return false;
    const std::span<const WalkStep> known = trail_.known_from_here(stack_, room_for_frames());
    if (known.empty()) return false;
    for (size_t i = known.size() - 1; i-- > 0;) frames_.add(known[i].frame);
    stats_.remembered_frames += known.size() - 1;
    end_ = WalkEnd::Root;
    return true;
  }

  Step step() {
    if (module_->cfi == nullptr) return step_without_rows();
    const LinkAddress pc = to_link({cursor_.lookup_pc()}, module_->bias);
    return mode_ == Mode::Full ? step_by_whole_row(pc) : step_by_cached_rule(pc);
  }

  // Code is read on from an exact pc itself, but from behind a return address's.
  uint64_t cache_key(LinkAddress pc) const {
    const uint64_t key = RuleCache::key_of(module_->image, pc);
    return cursor_.pc_is_exact && key != RuleCache::kNoKey ? key | RuleCache::kExactPc : key;
  }

  Step step_by_cached_rule(LinkAddress pc) {
    const uint64_t key = cache_key(pc);
    const CompactRule* cached = cache_.find(key);
    return cached != nullptr ? step_by_rule(pc, *cached) : step_by_new_rule(pc, key);
  }

  // Apart, since a Row is large and the warm path needs none.
  [[gnu::noinline]] Step step_by_new_rule(LinkAddress pc, uint64_t key) {
    Row row;
    const uint32_t unanswered_before = unanswered_reads();
    const CompactRule rule = make_rule(pc, row);
    keep_rule(key, rule, row, unanswered_before);
    if (!spend(row.work)) return ends(WalkEnd::Unsupported);
    return rule.kind == CompactKind::Full ? step_over(row) : step_by_rule(pc, rule);
  }

  uint32_t unanswered_reads() const {
    return module_->code == nullptr ? 0 : module_->code->unanswered_reads();
  }

  // Not where code could not be looked at for want of work, or of an answer since
  // `unanswered_before`, nor what was made of a provisional answer: it is another walk's rule, too.
  void keep_rule(uint64_t key, CompactRule rule, const Row& row, uint32_t unanswered_before) {
    const bool is_final = !row.is_provisional && unanswered_reads() == unanswered_before;
    if (work_left_ > 0 && is_final) cache_.insert(key, rule);
  }

  CompactRule make_rule(LinkAddress pc, Row& row) {
    const FrameRow found = row_of_frame(pc, row);
    if (found.status != RowStatus::Found) return rule_without_row(found, pc, row);
    if (found.begins_at_exact_pc) return {.kind = CompactKind::Full};  // says so with each walk
    const CompactRule rule = rule_of_row(pc, row);
    const bool is_too_expensive = rule.kind == CompactKind::Full && row.work > kMaxUncachedWork;
    return is_too_expensive ? CompactRule{.kind = CompactKind::Unsupported} : rule;
  }

  // What there is instead of a row; `row` counts the work.
  CompactRule rule_without_row(FrameRow found, LinkAddress pc, Row& row) const {
    if (found.status != RowStatus::NoCfi || arch_ != Arch::X86_64) {
      return compact_rule_of(found.status);
    }
    if (found.is_before_function) return {.kind = CompactKind::RootBehindNoCall};
    const LinkAddress next_instruction{pc.value + (cursor_.pc_is_exact ? 0 : 1)};
    return rule_of_code(next_instruction, row.work);
  }

  // Of the image's code at `pc`, where an instruction begins.
  CompactRule rule_of_code(LinkAddress pc, uint32_t& work) const {
    if (module_->code == nullptr) return {};
    const CodeStretch known = stretches_.at_or_behind(module_->image, pc);
    const uint32_t work_before = work;
    const CodeStretch stretch =
        stretch_from_code(*module_->code, pc, work, kMaxInstructionsOfFile, known);
    if (work - work_before >= kDearCodeWork) stretches_.add(module_->image, stretch);
    return stretch.rule;
  }

  // False if that was the last of the walk's work.
  bool spend(uint32_t work) { return unwind::spend(work, work_left_); }

  Step step_by_rule(LinkAddress pc, CompactRule rule) {
    switch (rule.kind) {
      case CompactKind::CfaFromSp:
        if (!cursor_.sp_is_known) return step_from_frame_record(rule);
        return step_from_cfa(rule, cursor_.sp + as_bytes(rule.cfa_words));
      case CompactKind::CfaFromFp:
        if (!cursor_.fp_is_known) return ends(WalkEnd::UnknownRegister);
        return step_from_frame_pointer(rule, cursor_.fp + as_bytes(rule.cfa_words));
      case CompactKind::CfaFarFromSp: {
        const uint64_t cfa = cursor_.sp + rule.far_cfa_bytes();
        rule.return_address_words = -1;
        if (!cursor_.sp_is_known) return step_from_frame_record(rule);
        return step_from_cfa(rule, cfa);
      }
      case CompactKind::LinkFromSp:
        return step_by_link_register(rule);
      case CompactKind::Full:
        return step_by_whole_row(pc);
      case CompactKind::Root:
        return ends(WalkEnd::Root);
      case CompactKind::CodeFromSp:
      case CompactKind::CodeFromFp:
      case CompactKind::CodeFromRegister:
      case CompactKind::CodeFromWordAtSp:
      case CompactKind::CodeFromWordAtFp:
      case CompactKind::NoCfi:
        return step_without_cfi(rule);
      case CompactKind::RootBehindNoCall:
        return is_entered_by_return() ? ends_at_first_instruction() : step_without_cfi(rule);
      case CompactKind::OtherStack:
        left_frame_pointer_ = cursor_.fp_is_known ? cursor_.fp : 0;
        return ends(WalkEnd::OtherStack);
      case CompactKind::Malformed:
        return ends(WalkEnd::BadCfi);
      case CompactKind::Unsupported:
        break;
    }
    return ends(WalkEnd::Unsupported);
  }

  static uint64_t as_bytes(int16_t words) { return static_cast<uint64_t>(int64_t{words} * 8); }

  Step step_from_cfa(CompactRule rule, uint64_t cfa, FrameOrigin origin = FrameOrigin::Cfi) {
    // A return address in memory lies above the stack pointer and below the CFA.
    if (cfa <= cursor_.sp) return ends_unless_code_leads_on(WalkEnd::NoProgress);
    const uint64_t slot = cfa + as_bytes(rule.return_address_words);
    uint64_t return_address = 0;
    if (!stack_.read_u64({slot}, return_address)) return ends_outside({slot});
    trail_.read_return_address(slot, return_address);
    if (rule.fp == CompactFp::Saved) load_frame_pointer(cfa + as_bytes(rule.fp_words));
    if (rule.fp == CompactFp::Unknown) cursor_.fp_is_known = false;
    if (addresses_.is_nobody(return_address)) return ends_unless_code_leads_on(WalkEnd::Root);
    move_to_caller(return_address, cfa, origin);
    return Step::Continues;
  }

  Step step_from_frame_pointer(CompactRule rule, uint64_t cfa) {
    const bool is_lost = cfa <= cursor_.sp && arch_ == Arch::X86_64 && !cursor_.pc_is_exact;
    return is_lost ? step_past_lost_frame_pointer() : step_from_cfa(rule, cfa);
  }

  // A function that keeps frame pointers has its own in the register when it calls: it points at
  // the two words where this function saved its caller's and its return address (AAPCS64,
  // section 6.4.6). The row does not say whether it does.
  Step step_from_frame_record(CompactRule rule) {
    const bool has_record =
        rule.fp == CompactFp::Saved && rule.return_address_words == rule.fp_words + 1;
    if (!has_record || !cursor_.fp_is_known) return ends(WalkEnd::UnknownRegister);
    return step_from_cfa(rule, cursor_.fp - as_bytes(rule.fp_words), FrameOrigin::FramePointer);
  }

  // Only what made no call since still has its return address in the register. `registers_` are
  // those of a frame whose pc is exact.
  Step step_by_link_register(CompactRule rule) {
    if (!knows_link_register()) return ends(WalkEnd::UnknownRegister);
    const uint64_t cfa = cursor_.sp + as_bytes(rule.cfa_words);
    if (!is_progress(cfa)) return ends(WalkEnd::NoProgress);
    return step_to_link(cfa, FrameOrigin::Cfi);
  }

  bool knows_link_register() const {
    return cursor_.pc_is_exact && registers_.is_known(names_.link_register);
  }

  Step step_to_link(uint64_t sp, FrameOrigin origin) {
    const uint64_t return_address = registers_.get(names_.link_register);
    if (addresses_.is_nobody(return_address)) return ends(WalkEnd::Root);
    move_to_caller(return_address, sp, origin);
    return Step::Continues;
  }

  // Where the next return address lies is known only with the rule of this one, so each would wait
  // for memory on its own; but it is not far above.
  void prefetch_above(uint64_t sp) {
    const uint64_t end = sp - stack_.begin().value + kPrefetch_bytes;
    if (end > stack_.copied_bytes()) return;
    if (prefetched_bytes_ + kPrefetch_bytes < end) prefetched_bytes_ = end - kPrefetch_bytes;
    for (; prefetched_bytes_ < end; prefetched_bytes_ += kCacheLine_bytes) {
      stack_.prefetch(prefetched_bytes_);
    }
  }

  void load_frame_pointer(uint64_t slot) {
    if (stack_.read_u64({slot}, cursor_.fp)) {
      cursor_.fp_is_known = true;
      trail_.read_saved_fp(slot, cursor_.fp);
      return;
    }
    trail_.breaks();
    if (!cursor_.is_leaf || !is_in_red_zone(slot, cursor_.sp)) {
      cursor_.fp_is_known = false;
    }  // else: popped already, see CalleeFrame
  }

  // The caller's stack pointer must lie above the callee's: a call pushes a return address. Only
  // where a register holds it (aarch64; x86-64 in glibc's vfork, which has popped it) may a frame
  // that made no call leave the stack pointer alone. The caller's frame made one: no circle.
  bool is_progress(uint64_t caller_sp) const {
    return caller_sp > cursor_.sp || (cursor_.pc_is_exact && caller_sp == cursor_.sp);
  }

  void move_to_caller(uint64_t return_address, uint64_t sp, FrameOrigin origin) {
    prefetch_above(sp);
    cursor_.pc = addresses_.without_signature(return_address);
    cursor_.sp = sp;
    cursor_.sp_is_known = true;
    cursor_.origin = origin;
    cursor_.pc_is_exact = false;
    cursor_.is_leaf = false;
  }

  // Why a word outside the snapshot could not be read.
  Step ends_outside(RuntimeAddress address) {
    if (has_left_snapshot_) return ends(WalkEnd::OtherStack);
    const bool was_cut = stack_.may_go_on() && stack_.is_beyond_end(address) &&
                         address.value - stack_.begin().value <=
                             stack_.end() - stack_.begin().value + kStackReach_bytes;
    missing_ = address;
    return ends(was_cut ? WalkEnd::StackTruncated : WalkEnd::BadMemory);
  }

  // walk_by_whole_row.cpp
  FrameRow row_of_frame(LinkAddress pc, Row& row);
  CompactRule rule_of_row(LinkAddress pc, Row& row) const;
  [[gnu::noinline]] Step step_by_whole_row(LinkAddress pc);
  Step step_without_row(FrameRow found, LinkAddress pc, Row& row, uint32_t unanswered_before);
  Step step_over(const Row& row);
  Step step_by_row_that_failed(const Row& row, const RowResult& result);
  std::optional<Step> step_by_leafs_register(const Row& row);
  std::optional<Step> step_by_copy_of_sp(const Row& row, RuntimeAddress failed);
  std::optional<Step> step_by_likely_row(const Row& row);
  bool has_frame_record_of(const Row& row);
  void put_cursor_into_registers();
  Step ends_with(const RowResult& result);
  Step take_registers(const Registers& caller, bool is_over_signal_frame);
  bool may_jump_to(uint64_t sp);

  // walk_without_cfi.cpp
  bool is_entered_by_return();
  Step ends_at_first_instruction();
  [[gnu::noinline]] Step step_without_rows();
  [[gnu::noinline]] Step step_without_cfi(CompactRule rule);
  std::optional<Step> step_by_memory_code();
  std::optional<Step> step_from_start_up_code();
  std::optional<uint64_t> word_of_frame_record();
  bool has_frame_record();
  bool frame_pointer_leads_on();
  std::optional<Step> step_further_in();
  std::optional<Step> step_without_frame_pointer();
  std::optional<Step> step_past_jumps();
  std::optional<Step> step_by_code(CompactRule rule);
  std::optional<Step> step_from_register(CompactRule rule);
  bool goes_on_by_code_of_leaf();
  bool step_by_code_of_leaf();
  bool was_just_called();
  [[gnu::noinline]] Step ends_unless_code_leads_on(WalkEnd end);
  std::optional<Step> step_from_word(uint64_t base, CompactRule rule);
  void restore_frame_pointer(CompactRule rule, uint64_t cfa);
  // Of return addresses: code that no file holds may have been laid out as one by hand.
  enum class Believed : uint8_t { BehindCalls, AlsoMemoryCode };
  std::optional<Step> step_outside_frame_record(Believed believed);
  std::optional<Step> step_by_code_to(uint64_t cfa, CompactRule rule,
                                      Believed believed = Believed::BehindCalls);
  Step step_by_likely(uint64_t return_address, uint64_t sp, FrameOrigin origin);
  Step step_by_frame_pointer();
  std::optional<Step> step_by_mark_of_first();
  bool has_unread_image() const;
  bool link_register_leads_out();
  void forget_what_calls_overwrite();
  bool is_called_by_link(uint64_t return_address);
  Step ends_outside_frame_pointer(RuntimeAddress address);

  // walk_by_prologue.cpp
  std::optional<Step> step_by_prologue();
  std::optional<Step> step_by_frame(const CompactRule& rule);
  std::optional<Step> step_over_pushed_words(const CompactRule& rule);
  std::optional<Step> step_from_called_stub(LinkAddress begin);
  std::optional<Step> step_from_entered_stub();
  std::optional<Step> step_over_stub(int16_t words);
  bool called_stub_here(uint64_t return_address, LinkAddress begin);
  std::optional<Step> leave_unknown_code(WalkEnd end);
  bool has_just_returned();
  std::optional<uint64_t> sp_of_interpreter();
  bool is_sp_of_call(uint64_t sp);
  RuntimeAddress begin_of_memory_code() const;
  std::optional<uint64_t> sp_kept_by_callee(uint64_t cfa_above_sp);

  // walk_by_called_row.cpp
  std::optional<Step> step_by_row_of_called();
  std::optional<CompactRule> rule_of_called(uint64_t pc);

  // walk_by_function_start.cpp
  bool may_read_function() const;
  FunctionSearch search();
  std::optional<Step> step_by_function_start(CompactRule rule);
  [[gnu::noinline]] Step step_past_lost_frame_pointer();

  const Arch arch_;
  const ArchRegisters names_;
  FrameOrigin first_ = FrameOrigin::Leaf;
  const Registers& leaf_;
  const StackSnapshot& stack_;
  const ModuleMap& modules_;
  RuleCache& cache_;
  MemoryRules& memory_rules_;
  CodeStretches& stretches_;
  VainSearches& vain_searches_;
  UnwinderStats& stats_;
  KeptFrames frames_;
  WalkTrail& trail_;
  uint32_t& work_left_;  // of kMaxWork, for both modes
  ReturnAddresses addresses_;

  Mode mode_ = Mode::Fast;
  Cursor cursor_;
  Registers registers_;  // all that is known: of the leaf, and in full mode of every frame
  const Module* module_ = nullptr;  // of that frame
  uint64_t prefetched_bytes_ = 0;   // of the snapshot, from its beginning
  unsigned stack_changes_ = 0;
  bool went_by_frame_pointer_ = false;
  uint64_t sp_above_stub_ = 0;      // behind the return of the stub that was running; 0: none was
  bool has_left_snapshot_ = false;  // over a signal frame, to a stack that was not copied
  WalkEnd end_ = WalkEnd::UnmappedPc;
  RuntimeAddress missing_;  // where the word lies that ended the walk
  uint64_t left_frame_pointer_ = 0;
};

}  // namespace sentry_prof::unwind
