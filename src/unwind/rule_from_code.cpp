#include "unwind/rule_from_code.h"

#include "unwind/x86_instruction.h"

#include <algorithm>
#include <array>
#include <optional>

namespace sentry_prof::unwind {
namespace {

constexpr int64_t kWord_bytes = 8;
constexpr uint32_t kInstructionWork = 4;
// Twice what the longest way that was met takes. A walk may need some such rules, see kMaxWork.
constexpr uint32_t kMaxRuleWork = 1u << 16;

// Reads code in pieces.
class CodeWindow {
 public:
  CodeWindow(const CodeSource& source, uint32_t& work) : source_(source), work_(work) {}

  // The code from `pc` on, as much of it as an instruction may have; less at its end.
  Bytes at(LinkAddress pc) {
    if (pc < begin_ || pc.value - begin_.value + kLongestX86Instruction_bytes > size_bytes_) {
      load(pc);
    }
    const uint64_t inside = pc.value - begin_.value;
    const Bytes loaded = std::as_bytes(std::span(piece_)).first(size_bytes_);
    return inside >= loaded.size() ? Bytes() : loaded.subspan(static_cast<size_t>(inside));
  }

 private:
  // A whole piece once the way is long, a small one first and near the end of the code; at its end
  // what an instruction may have.
  void load(LinkAddress pc) {
    const bool is_long_way = size_bytes_ > 0;
    begin_ = pc;
    if (is_long_way && read(piece_.size())) return;
    if (read(kSmallPiece_bytes)) return;
    for (size_t count = kLongestX86Instruction_bytes; count > 0; --count) {
      if (read(count)) return;
    }
  }

  bool read(size_t count) {
    work_ += kReadCodeWork;
    const bool is_read =
        source_.read_code(begin_, std::as_writable_bytes(std::span(piece_)).first(count));
    size_bytes_ = is_read ? count : 0;
    return is_read;
  }

  static constexpr size_t kSmallPiece_bytes = 256;

  const CodeSource& source_;
  uint32_t& work_;
  LinkAddress begin_;
  size_t size_bytes_ = 0;
  std::array<uint8_t, 4096> piece_;  // the first size_bytes_ of it are
};

// All registers are told relative to what they are at the pc in question. Assembly with a realigned
// stack has its stack pointer elsewhere: Kept is one of kX86KeptRegisters, Word a word of the
// stack.
enum class Base : uint8_t { Sp, Fp, Kept, Word };

// Where the frame pointer's value is.
struct FpValue {
  enum class Kind : uint8_t {
    Original,  // still in the register, or put back
    AtSp,      // it is an address of the stack: sp + offset_bytes
    InMemory,  // at `base` + offset_bytes
    Unknown,
  };
  Kind kind = Kind::Original;
  Base base = Base::Sp;
  int64_t offset_bytes = 0;
};

struct State {
  Base base = Base::Sp;
  unsigned kept_base = 0;  // its number, with Base::Kept
  // With Base::Word: the word is there, relative to Base::Sp or Base::Fp.
  Base word_base = Base::Sp;
  int64_t word_bytes = 0;
  int64_t offset_bytes = 0;  // the stack pointer is base + this
  X86KeptRegisters overwritten = 0;
  bool sp_is_known = true;
  FpValue fp;
  // The last frame pointer that was saved from here on, and where; it is not on the stack yet.
  FpValue saved;
  int64_t saved_at_bytes = INT64_MAX;

  bool is_at_same_sp(const State& other) const {
    return sp_is_known == other.sp_is_known && base == other.base &&
           offset_bytes == other.offset_bytes;
  }
};

struct Branch {
  LinkAddress target;
  State state;
  LinkAddress stretch_end;
};

// What was read of the code: runs of instructions, each from where a jump or branch led to the next
// jump. What is in them is not read again, so that the time goes with the code's size and not with
// its branches.
class ReadRuns {
 public:
  // A run at `pc`, which contains() denies. False if there is no place for another.
  bool open(LinkAddress pc) {
    if (count_ == runs_.size()) return false;
    next_begin_ = UINT64_MAX;
    for (const Run& run : so_far()) {
      if (pc.value < run.begin) next_begin_ = std::min(next_begin_, run.begin);
    }
    runs_[count_++] = {pc.value, pc.value};
    return true;
  }
  // The run that was opened last goes on to `pc`. False where another one begins.
  bool extend(LinkAddress pc) {
    runs_[count_ - 1].end = pc.value;
    return pc.value < next_begin_;
  }
  bool contains(LinkAddress pc) const {
    return std::ranges::any_of(
        so_far(), [pc](const Run& run) { return run.begin <= pc.value && pc.value < run.end; });
  }
  uint32_t work_of_search() const { return static_cast<uint32_t>(count_) / kRunsAWork; }

 private:
  struct Run {
    uint64_t begin, end;
  };
  static constexpr uint32_t kRunsAWork = 16;

  std::span<const Run> so_far() const { return std::span(runs_).first(count_); }

  std::array<Run, 256> runs_;  // the first count_ of it are
  size_t count_ = 0;
  uint64_t next_begin_ = UINT64_MAX;  // of the runs behind the one that was opened last
};

enum class Way : uint8_t { Straight, AlongJumps };

class CodeReading {
 public:
  CodeReading(const CodeSource& code, Way way, unsigned max_instructions, uint32_t& work)
      : is_straight_(way == Way::Straight),
        max_instructions_(max_instructions),
        window_(code, work),
        work_(work) {}

  CodeStretch run(LinkAddress pc, const CodeStretch& known) {
    if (known.contains(pc)) return known;
    pc_ = stretch_end_ = pc;
    runs_.open(pc);
    const uint32_t work_before = work_;
    for (unsigned i = 0; i < max_instructions_ && work_ - work_before < kMaxRuleWork; ++i) {
      work_ += kInstructionWork;
      if (is_in_stretch_ && pc_ == known.begin && is_same_here(known.rule)) {
        return {pc, known.end, known.rule};
      }
      const auto instruction = decode_x86(window_.at(pc_));
      Outcome outcome = instruction ? apply(*instruction) : Outcome::Stops;
      if (outcome == Outcome::Returns) return {pc, stretch_end_, rule()};
      if (outcome == Outcome::GoesOn && !may_go_on())
        outcome = came_by_jump_ ? Outcome::Stops : Outcome::Ends;
      if (outcome == Outcome::Stops) may_return_ = true;
      if (outcome != Outcome::GoesOn && !take_branch()) return {pc, pc, rule_without_return()};
    }
    return {pc, pc, {}};
  }

 private:
  // Of this way: it is at its end, and the function with it, or what comes was read already; or
  // nothing more can be told of it, as of a jump that goes in circles.
  enum class Outcome : uint8_t { GoesOn, Returns, Ends, Stops };

  Outcome apply(const X86Instruction& instruction) {
    const LinkAddress next{pc_.value + instruction.size_bytes};
    const LinkAddress target{next.value + static_cast<uint64_t>(int64_t{instruction.operand})};
    if (next < pc_) return Outcome::Stops;  // over the end of the address space
    pc_ = next;
    state_.overwritten |= instruction.writes_kept;
    stay_in_stretch(instruction.effect);
    switch (instruction.effect) {
      case X86Effect::None:
        return Outcome::GoesOn;
      case X86Effect::Push:
        return push();
      case X86Effect::PushFp:
        return push_fp();
      case X86Effect::Pop:
        return move_sp(kWord_bytes);
      case X86Effect::PopFp:
        return pop_fp();
      case X86Effect::AddToSp:
        return move_sp(instruction.operand);
      case X86Effect::SpFromFp:
        return sp_from_fp(instruction.operand);
      case X86Effect::FpFromSp:
        return fp_from_sp(instruction.operand);
      case X86Effect::SavesFp:
        return save_fp(instruction.operand);
      case X86Effect::RestoresFp:
        return restore_fp(instruction.operand);
      case X86Effect::FollowsFp:
        return follow_fp();
      case X86Effect::Leave:
        sp_from_fp(0);
        return pop_fp();
      case X86Effect::OverwritesFp:
        state_.fp = {FpValue::Kind::Unknown};
        return Outcome::GoesOn;
      case X86Effect::Branch:
        if (is_straight_) break;
        note_branch(target);
        return Outcome::GoesOn;
      case X86Effect::Jump:
        return is_straight_ ? Outcome::Stops : jump(target);
      case X86Effect::Return:
        arguments_bytes_ = instruction.operand;
        return Outcome::Returns;
      case X86Effect::JumpByPointer:
        return Outcome::Returns;
      case X86Effect::JumpElsewhere:
        if (!is_straight_ && !tail_call_ && rule() != CompactRule{}) tail_call_ = rule();
        break;
      case X86Effect::SpFromKept:
        return sp_from_kept(instruction);
      case X86Effect::SpFromStack:
        return sp_from_stack(instruction.operand);
      case X86Effect::CallsKernel:
        may_return_ = true;
        return Outcome::GoesOn;
      case X86Effect::Traps:
        return Outcome::Ends;
      case X86Effect::OverwritesSp:
        state_.sp_is_known = false;
        return Outcome::GoesOn;
      case X86Effect::Stops:
        break;
    }
    return Outcome::Stops;
  }

  // Not into code that was read. Nor to where a branch leads with its stack pointer elsewhere: this
  // way came through a call that does not return, from one function into the next.
  bool may_go_on() {
    if (!runs_.extend(pc_)) return false;
    if (pc_.value < next_noted_) return true;
    const auto here = std::ranges::find_if(
        noted_branches(), [this](const Branch& branch) { return branch.target == pc_; });
    find_next_noted();
    return here == noted_branches().end() || here->state.is_at_same_sp(state_);
  }

  void find_next_noted() {
    next_noted_ = UINT64_MAX;
    for (const Branch& branch : noted_branches()) {
      if (pc_ < branch.target) next_noted_ = std::min(next_noted_, branch.target.value);
    }
  }

  // As long as nothing has changed that a rule tells of, and no jump was followed.
  void stay_in_stretch(X86Effect effect) {
    is_in_stretch_ = is_in_stretch_ && (effect == X86Effect::None || effect == X86Effect::Branch ||
                                        effect == X86Effect::CallsKernel);
    if (is_in_stretch_) stretch_end_ = pc_;
  }

  // The rule of an instruction further on in this stretch. A register that it names was not
  // overwritten there, but may have been before.
  bool is_same_here(CompactRule rule) const {
    return rule.kind != CompactKind::CodeFromKept ||
           (state_.overwritten >> rule.kept_register() & 1) == 0;
  }

  Outcome move_sp(int64_t bytes) {
    state_.offset_bytes += bytes;
    return Outcome::GoesOn;
  }

  Outcome push() {
    move_sp(-kWord_bytes);
    if (state_.offset_bytes == state_.saved_at_bytes) state_.saved_at_bytes = INT64_MAX;
    return Outcome::GoesOn;
  }

  Outcome push_fp() {
    move_sp(-kWord_bytes);
    return save_fp(0);
  }

  Outcome pop_fp() {
    restore_fp(0);
    return move_sp(kWord_bytes);
  }

  Outcome save_fp(int64_t bytes) {
    if (!state_.sp_is_known) return Outcome::GoesOn;
    state_.saved = state_.fp;
    state_.saved_at_bytes = state_.offset_bytes + bytes;
    return Outcome::GoesOn;
  }

  Outcome restore_fp(int64_t bytes) {
    const int64_t from_bytes = state_.offset_bytes + bytes;
    if (!state_.sp_is_known) {
      state_.fp = {FpValue::Kind::Unknown};
    } else if (from_bytes == state_.saved_at_bytes) {
      state_.fp = state_.saved;
    } else if (state_.base == Base::Sp && from_bytes < 0) {
      state_.fp = {FpValue::Kind::Unknown};  // put there from another register
    } else {
      state_.fp = {FpValue::Kind::InMemory, state_.base, from_bytes};
    }
    return Outcome::GoesOn;
  }

  Outcome follow_fp() {
    const bool is_original = state_.fp.kind == FpValue::Kind::Original;
    state_.fp = is_original ? FpValue{FpValue::Kind::InMemory, Base::Fp, 0}
                            : FpValue{FpValue::Kind::Unknown};
    return Outcome::GoesOn;
  }

  Outcome sp_from_fp(int64_t bytes) {
    state_.sp_is_known = true;
    if (state_.fp.kind == FpValue::Kind::AtSp) {
      if (state_.base != Base::Sp) state_.saved_at_bytes = INT64_MAX;
      state_.base = Base::Sp;
      state_.offset_bytes = state_.fp.offset_bytes + bytes;
    } else if (state_.fp.kind == FpValue::Kind::Original) {
      state_.base = Base::Fp;
      state_.offset_bytes = bytes;
      state_.saved_at_bytes = INT64_MAX;
    } else {
      state_.sp_is_known = false;
    }
    return Outcome::GoesOn;
  }

  Outcome sp_from_kept(const X86Instruction& instruction) {
    if ((state_.overwritten >> instruction.kept_source & 1) != 0) {
      state_.sp_is_known = false;
      return Outcome::GoesOn;
    }
    state_.sp_is_known = true;
    state_.kept_base = instruction.kept_source;
    return stand_on(Base::Kept, instruction.operand);
  }

  // Of a word that was on the stack at the pc in question, if the code has not put it there since.
  Outcome sp_from_stack(int64_t bytes) {
    const int64_t word_bytes = state_.offset_bytes + bytes;
    const bool is_there = state_.base == Base::Fp || (state_.base == Base::Sp && word_bytes >= 0);
    if (!is_there) state_.sp_is_known = false;
    if (!state_.sp_is_known) return Outcome::GoesOn;
    state_.word_base = state_.base;
    state_.word_bytes = word_bytes;
    return stand_on(Base::Word, 0);
  }

  Outcome stand_on(Base base, int64_t offset_bytes) {
    state_.base = base;
    state_.offset_bytes = offset_bytes;
    state_.saved_at_bytes = INT64_MAX;
    // It may be told by another register or word.
    if (state_.fp.base == base) state_.fp = {FpValue::Kind::Unknown};
    return Outcome::GoesOn;
  }

  Outcome fp_from_sp(int64_t bytes) {
    state_.fp = state_.base == Base::Sp && state_.sp_is_known
                    ? FpValue{FpValue::Kind::AtSp, Base::Sp, state_.offset_bytes + bytes}
                    : FpValue{FpValue::Kind::Unknown};
    return Outcome::GoesOn;
  }

  Outcome jump(LinkAddress target) {
    runs_.extend(pc_);
    if (is_read(target) || !open_run(target)) return Outcome::Stops;
    pc_ = target;
    came_by_jump_ = true;
    find_next_noted();
    return Outcome::GoesOn;
  }

  void note_branch(LinkAddress target) {
    runs_.extend(pc_);
    if (is_noted(target) || is_read(target)) return;
    if (branch_count_ == branches_.size()) forget_read_branches();
    if (branch_count_ == branches_.size()) {
      is_read_whole_ = false;
    } else {
      branches_[branch_count_++] = {target, state_, stretch_end_};
      if (pc_ < target) next_noted_ = std::min(next_noted_, target.value);
    }
  }

  // The one noted last: it is likely to be near.
  bool take_branch() {
    while (branch_count_ > 0) {
      const Branch& branch = branches_[--branch_count_];
      if (is_read(branch.target) || !open_run(branch.target)) continue;
      pc_ = branch.target;
      state_ = branch.state;
      stretch_end_ = branch.stretch_end;
      is_in_stretch_ = false;
      came_by_jump_ = false;
      find_next_noted();
      return true;
    }
    return false;
  }

  // What stood behind the branch went on there.
  void forget_read_branches() {
    const std::span<Branch> noted = noted_branches();
    const auto left = std::remove_if(noted.begin(), noted.end(), [this](const Branch& branch) {
      return is_read(branch.target);
    });
    branch_count_ = static_cast<size_t>(left - noted.begin());
  }

  bool is_noted(LinkAddress target) {
    return std::ranges::any_of(noted_branches(),
                               [target](const Branch& branch) { return branch.target == target; });
  }

  bool is_read(LinkAddress target) {
    work_ += runs_.work_of_search();
    return runs_.contains(target);
  }

  bool open_run(LinkAddress target) {
    const bool is_open = runs_.open(target);
    if (!is_open) is_read_whole_ = false;
    return is_open;
  }

  std::span<Branch> noted_branches() { return std::span(branches_).first(branch_count_); }

  // A return address that is on the stack now, and behind a call that pushed words of eight bytes.
  bool is_plausible() const {
    if (!state_.sp_is_known || state_.offset_bytes % kWord_bytes != 0) return false;
    return state_.base == Base::Fp ? state_.offset_bytes > 0 : state_.offset_bytes >= 0;
  }

  CompactRule rule_without_return() const {
    if (!is_read_whole_) return {};
    if (tail_call_) return *tail_call_;
    return {.kind = may_return_ ? CompactKind::NoCfi : CompactKind::RootBehindNoCall};
  }

  // Of the state in which the code returns.
  CompactRule rule() const {
    const bool has_record = state_.fp.kind == FpValue::Kind::InMemory &&
                            state_.fp.base == Base::Fp && state_.fp.offset_bytes == 0;
    // The return address is beside the caller's frame pointer, wherever the stack pointer is.
    if (has_record) return rule_of(Base::Fp, kWord_bytes);
    return is_plausible() ? rule_of(state_.base, state_.offset_bytes) : CompactRule{};
  }

  CompactRule rule_of(Base base, int64_t return_address_bytes) const {
    if (arguments_bytes_ % kWord_bytes != 0) return {};
    const int64_t above_words = arguments_bytes_ / kWord_bytes + 1;
    const int64_t cfa_words = return_address_bytes / kWord_bytes + above_words;
    if (cfa_words > INT16_MAX) return {};
    CompactRule rule{.kind = kind_of(base),
                     .cfa_words = static_cast<int16_t>(cfa_words),
                     .return_address_words = static_cast<int16_t>(-above_words)};
    if (base == Base::Kept || base == Base::Word) {
      const auto where = place_of(base);
      if (above_words != 1 || !where) return {};  // nor do compilers make such functions
      rule.return_address_words = *where;
    }
    if (state_.fp.kind == FpValue::Kind::Original) return rule;
    rule.fp = CompactFp::Unknown;
    const int64_t fp_words = state_.fp.offset_bytes / kWord_bytes - cfa_words;
    if (state_.fp.kind == FpValue::Kind::InMemory && state_.fp.base == base &&
        state_.fp.offset_bytes % kWord_bytes == 0 && fp_words >= INT16_MIN &&
        fp_words < -above_words) {
      rule.fp = CompactFp::Saved;
      rule.fp_words = static_cast<int16_t>(fp_words);
    }
    return rule;
  }

  // The register's number, or where the word is.
  std::optional<int16_t> place_of(Base base) const {
    if (base == Base::Kept) return static_cast<int16_t>(state_.kept_base);
    const int64_t words = state_.word_bytes / kWord_bytes;
    const bool fits =
        state_.word_bytes % kWord_bytes == 0 && words >= INT16_MIN && words <= INT16_MAX;
    return fits ? std::optional(static_cast<int16_t>(words)) : std::nullopt;
  }

  CompactKind kind_of(Base base) const {
    switch (base) {
      case Base::Sp:
        return CompactKind::CodeFromSp;
      case Base::Fp:
        return CompactKind::CodeFromFp;
      case Base::Kept:
        return CompactKind::CodeFromKept;
      case Base::Word:
        break;
    }
    return state_.word_base == Base::Sp ? CompactKind::CodeFromWordAtSp
                                        : CompactKind::CodeFromWordAtFp;
  }

  const bool is_straight_;  // no jump is followed
  const unsigned max_instructions_;
  CodeWindow window_;
  uint32_t& work_;
  LinkAddress pc_;
  State state_;
  LinkAddress stretch_end_;
  bool is_in_stretch_ = true;  // what was read lies in a row, in the state of the first instruction
  // Of the first jump that may be one. If it goes by a table, some branch leads to a return.
  std::optional<CompactRule> tail_call_;
  int32_t arguments_bytes_ = 0;  // that the return takes off the stack, too
  bool came_by_jump_ =
      false;  // to this run: where it leads to code that was read, that may be a loop
  bool is_read_whole_ = true;  // no branch had to be dropped
  bool may_return_ = false;    // some way's end is not known
  std::array<Branch, 32> branches_;
  size_t branch_count_ = 0;
  uint64_t next_noted_ = UINT64_MAX;  // the nearest of their targets behind pc_
  ReadRuns runs_;
};

}  // namespace

CompactRule rule_from_code(const CodeSource& code, LinkAddress pc, uint32_t& work,
                           unsigned max_instructions) {
  return stretch_from_code(code, pc, work, max_instructions, {}).rule;
}

CodeStretch stretch_from_code(const CodeSource& code, LinkAddress pc, uint32_t& work,
                              unsigned max_instructions, const CodeStretch& known) {
  return CodeReading(code, Way::AlongJumps, max_instructions, work).run(pc, known);
}

CompactRule rule_from_straight_code(const CodeSource& code, LinkAddress pc, uint32_t& work) {
  return CodeReading(code, Way::Straight, kMaxStraightInstructions, work).run(pc, {}).rule;
}

}  // namespace sentry_prof::unwind
