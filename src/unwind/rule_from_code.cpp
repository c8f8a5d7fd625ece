#include "unwind/rule_from_code.h"

#include "unwind/call_site.h"
#include "unwind/code_state.h"
#include "unwind/code_window.h"
#include "unwind/constant_register.h"
#include "unwind/x86_instruction.h"

#include <algorithm>
#include <array>
#include <optional>

namespace sentry_prof::unwind {
namespace {

constexpr uint32_t kInstructionWork = 4;
// Twice what the longest way that was met takes. A walk may need some such rules, see kMaxWork.
constexpr uint32_t kMaxRuleWork = 1u << 16;
// The return of most functions is nearer.
constexpr unsigned kLongRun_instructions = 256;

struct Branch {
  LinkAddress target;
  CodeState state;
  ConstantRegister constant;
  LinkAddress stretch_end;
  bool is_rest = false;   // no branch, but a run that was put off
  bool is_ahead = false;  // of a rest: CodeReading::is_ahead_
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

bool sets_up_frame_pointer(const X86Instruction& instruction) {
  return instruction.effect == X86Effect::FpFromSp && instruction.operand == 0;
}

bool is_call(Bytes code, const X86Instruction& instruction) {
  return call_before(code.first(instruction.size_bytes)).kind != CallKind::None;
}

// Straight follows no jump, and ends at a branch; PastBranches goes on behind it; AlongAllJumps
// follows those by a register, too, that was loaded with an address; PastJumps goes on behind those
// that lead where nothing tells, too, when nothing else is left.
enum class Way : uint8_t { Straight, PastBranches, AlongJumps, AlongAllJumps, PastJumps };

class CodeReading {
 public:
  CodeReading(const CodeSource& code, Way way, unsigned max_instructions, uint32_t& work)
      : way_(way), max_instructions_(max_instructions), window_(code, work), work_(work) {}

  CodeStretch run(LinkAddress pc, const CodeStretch& known) {
    if (known.contains(pc)) return known;
    begin(pc);
    while (may_read()) {
      if (is_in_stretch_ && pc_ == known.begin && is_same_here(known.rule)) {
        return {pc, known.end, known.rule};
      }
      int32_t arguments_bytes = 0;
      const Outcome outcome = read_instruction(arguments_bytes);
      if (outcome == Outcome::Returns) {
        const CompactRule rule = state_.rule(arguments_bytes);
        if (may_believe_return()) return {pc, stretch_end_, rule};
        if (!unlikely_return_) unlikely_return_ = rule;
      }
      if (outcome == Outcome::Stops) may_return_ = true;
      if (outcome == Outcome::GoesOn) {
        if (is_long_run()) put_off();
      } else if (!take_branch()) {
        return {pc, pc, rule_without_return()};
      }
    }
    return {pc, pc, unlikely_return_.value_or(CompactRule{})};
  }

  // To where a function sets its frame pointer up, which begins in the state before the push, or to
  // a return that needs none.
  CompactRule run_outside_frame_record(LinkAddress pc) {
    begin(pc);
    CompactRule before_push;
    while (may_read()) {
      const Bytes code = window_.at(pc_);
      const auto instruction = decode_x86(code);
      if (!instruction || is_call(code, *instruction)) return {};
      if (sets_up_frame_pointer(*instruction)) return before_push;
      before_push = instruction->effect == X86Effect::PushFp ? state_.rule(0) : CompactRule{};
      const Outcome outcome = apply(*instruction);
      if (instruction->effect == X86Effect::Return) {
        const CompactRule rule = state_.rule(instruction->operand);
        return rule.fp == CompactFp::Same ? rule : CompactRule{};
      }
      if (outcome != Outcome::GoesOn) return {};
    }
    return {};
  }

  // The first way from `function` to `pc` that is found.
  CompactRule run_to(LinkAddress pc, LinkAddress function) {
    begin(function);
    while (may_read()) {
      if (pc_ == pc) return state_.rule_of_function();
      int32_t arguments_bytes = 0;
      if (read_instruction(arguments_bytes) != Outcome::GoesOn && !take_branch()) return {};
    }
    return {};
  }

 private:
  // Of this way: it is at its end, and the function with it, or what comes was read already; or
  // nothing more can be told of it, as of a jump that goes in circles.
  enum class Outcome : uint8_t { GoesOn, Returns, Ends, Stops };

  void begin(LinkAddress pc) {
    pc_ = stretch_end_ = pc;
    runs_.open(pc);
    work_before_ = work_;
  }

  bool may_read() {
    work_ += kInstructionWork;
    return instructions_++ < max_instructions_ && work_ - work_before_ < kMaxRuleWork;
  }

  // `arguments_bytes` is set where it returns.
  Outcome read_instruction(int32_t& arguments_bytes) {
    const Bytes code = window_.at(pc_);
    const auto instruction = decode_x86(code);
    if (instruction && follows_registers()) {
      const Bytes whole = code.first(instruction->size_bytes);
      loaded_target_ = constant_.target_of_jump(whole);
      constant_.apply(whole, *instruction);
    }
    const Outcome outcome = instruction ? apply(*instruction) : Outcome::Stops;
    if (outcome == Outcome::Returns) arguments_bytes = instruction->operand;
    if (outcome == Outcome::GoesOn && !may_go_on()) {
      return came_by_jump_ ? Outcome::Stops : Outcome::Ends;
    }
    return outcome;
  }

  Outcome apply(const X86Instruction& instruction) {
    const LinkAddress next{pc_.value + instruction.size_bytes};
    const LinkAddress target{next.value + static_cast<uint64_t>(int64_t{instruction.operand})};
    if (next < pc_) return Outcome::Stops;  // over the end of the address space
    pc_ = next;
    state_.apply(instruction);
    stay_in_stretch(instruction.effect);
    switch (instruction.effect) {
      case X86Effect::Branch:
        if (way_ == Way::Straight) return Outcome::Stops;
        if (follows_jumps()) note_branch(target);
        return Outcome::GoesOn;
      case X86Effect::Jump:
        return follows_jumps() ? jump(target) : Outcome::Stops;
      case X86Effect::JumpByPointer:
        return way_ == Way::PastBranches ? Outcome::Stops : Outcome::Returns;
      case X86Effect::Return:
        return Outcome::Returns;
      case X86Effect::JumpElsewhere:
        if (loaded_target_) return jump_by_register({*loaded_target_});
        note_tail_call();
        if (way_ == Way::PastJumps) note_last({pc_, state_, {}, stretch_end_});
        return Outcome::Stops;
      case X86Effect::CallsKernel:
        may_return_ = true;
        return Outcome::GoesOn;
      case X86Effect::Traps:
        return Outcome::Ends;
      case X86Effect::Stops:
        return Outcome::Stops;
      default:
        return Outcome::GoesOn;
    }
  }

  bool follows_registers() const { return way_ == Way::AlongAllJumps || way_ == Way::PastJumps; }
  bool follows_jumps() const { return way_ == Way::AlongJumps || follows_registers(); }

  void note_tail_call() {
    const CompactRule rule = state_.rule(0);
    if (follows_jumps() && !tail_call_ && rule != CompactRule{}) tail_call_ = rule;
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
    return rule.kind != CompactKind::CodeFromRegister ||
           !state_.has_overwritten(rule.base_register());
  }

  Outcome jump(LinkAddress target) {
    runs_.extend(pc_);
    if (is_read(target) || !open_run(target)) return Outcome::Stops;
    pc_ = target;
    came_by_jump_ = true;
    find_next_noted();
    return Outcome::GoesOn;
  }

  Outcome jump_by_register(LinkAddress target) {
    came_by_register_ = true;
    return jump(target);
  }

  void note_branch(LinkAddress target) {
    runs_.extend(pc_);
    if (is_noted(target) || is_read(target)) return;
    if (branch_count_ == branches_.size()) forget_read_branches();
    if (branch_count_ == branches_.size()) {
      is_read_whole_ = false;
    } else {
      branches_[branch_count_++] = {target, state_, constant_, stretch_end_};
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
      constant_ = branch.constant;
      if (branch.is_rest) is_ahead_ = branch.is_ahead;
      came_by_register_ = false;
      stretch_end_ = branch.stretch_end;
      is_in_stretch_ = false;
      came_by_jump_ = false;
      run_begin_ = instructions_;
      find_next_noted();
      return true;
    }
    return false;
  }

  // A trace may be one long run, but near each of its branches there is an exit (PyPy's guards).
  bool is_long_run() const {
    return follows_registers() && instructions_ - run_begin_ >= kLongRun_instructions &&
           branch_count_ > 0;
  }

  // The run at hand comes last.
  void put_off() {
    const Branch rest{pc_, state_, constant_, stretch_end_, true, is_ahead_};
    run_begin_ = instructions_;
    is_ahead_ = true;  // but for a rest that is taken now
    if (take_branch()) {
      note_last(rest);
    } else {
      is_ahead_ = rest.is_ahead;
    }
  }

  // To be taken after all others that are noted now.
  void note_last(const Branch& branch) {
    if (branch_count_ == branches_.size()) forget_read_branches();
    if (branch_count_ == branches_.size()) return;
    std::copy_backward(branches_.begin(), branches_.begin() + branch_count_,
                       branches_.begin() + branch_count_ + 1);
    branches_.front() = branch;
    ++branch_count_;
  }

  // Ahead of what was put off, a branch may have led to a call that does not return, and through it
  // into the next function. Exits of traces lie elsewhere.
  bool may_believe_return() const { return !is_ahead_ || came_by_register_; }

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

  CompactRule rule_without_return() const {
    if (unlikely_return_) return *unlikely_return_;
    if (!is_read_whole_) return {};
    if (tail_call_) return *tail_call_;
    return {.kind = may_return_ ? CompactKind::NoCfi : CompactKind::RootBehindNoCall};
  }

  const Way way_;
  const unsigned max_instructions_;
  CodeWindow window_;
  uint32_t& work_;
  uint32_t work_before_ = 0;
  unsigned instructions_ = 0;
  unsigned run_begin_ = 0;  // of them, since the last branch was taken
  LinkAddress pc_;
  CodeState state_;
  ConstantRegister constant_;
  LinkAddress stretch_end_;
  bool is_in_stretch_ = true;  // what was read lies in a row, in the state of the first instruction
  // Of the first jump that may be one. If it goes by a table, some branch leads to a return.
  std::optional<CompactRule> tail_call_;
  // Of a branch that was taken before the run at hand came to its end.
  std::optional<CompactRule> unlikely_return_;
  bool is_ahead_ = false;                  // such a branch, or one behind it
  bool came_by_register_ = false;          // to this run, or on the way from it
  std::optional<uint64_t> loaded_target_;  // of the instruction at hand, a jump by a register
  // To this run: where it leads to code that was read, that may be a loop.
  bool came_by_jump_ = false;
  bool is_read_whole_ = true;  // no branch had to be dropped
  bool may_return_ = false;    // some way's end is not known
  std::array<Branch, 32> branches_;
  size_t branch_count_ = 0;
  uint64_t next_noted_ = UINT64_MAX;  // the nearest of their targets behind pc_
  ReadRuns runs_;
};

// push %rbp; mov %rsp,%rbp: the latter is at `pc`. Not push %r13, which ends in the same byte.
bool is_behind_push_of_frame_pointer(const CodeSource& code, LinkAddress pc, uint32_t& work) {
  constexpr std::byte kPushFp{0x55};
  constexpr std::byte kPrefixOfOthers{0x41};
  std::array<std::byte, 2> before;
  work += 2 * kReadCodeWork;
  if (!code.read_code({pc.value - 1}, std::span(before).last(1)) || before[1] != kPushFp) {
    return false;
  }
  const bool is_of_other = code.read_code({pc.value - 2}, before) && before[0] == kPrefixOfOthers;
  const auto here = decode_x86(CodeWindow(code, work).at(pc));
  return !is_of_other && here && sets_up_frame_pointer(*here);
}

}  // namespace

CompactRule rule_from_code(const CodeSource& code, LinkAddress pc, uint32_t& work,
                           unsigned max_instructions) {
  return stretch_from_code(code, pc, work, max_instructions, {}).rule;
}

CompactRule rule_from_memory_code(const CodeSource& code, RuntimeAddress pc, uint32_t& work) {
  return CodeReading(code, Way::AlongAllJumps, kMaxInstructionsOfMemory, work)
      .run({pc.value}, {})
      .rule;
}

CompactRule rule_past_jumps(const CodeSource& code, RuntimeAddress pc, uint32_t& work) {
  return CodeReading(code, Way::PastJumps, kMaxInstructionsOfMemory, work).run({pc.value}, {}).rule;
}

CodeStretch stretch_from_code(const CodeSource& code, LinkAddress pc, uint32_t& work,
                              unsigned max_instructions, const CodeStretch& known) {
  return CodeReading(code, Way::AlongJumps, max_instructions, work).run(pc, known);
}

CompactRule rule_from_straight_code(const CodeSource& code, LinkAddress pc, uint32_t& work) {
  return CodeReading(code, Way::Straight, kMaxStraightInstructions, work).run(pc, {}).rule;
}

CompactRule rule_from_near_return(const CodeSource& code, LinkAddress pc, uint32_t& work) {
  return CodeReading(code, Way::PastBranches, kMaxEpilogueInstructions, work).run(pc, {}).rule;
}

CompactRule rule_outside_frame_record(const CodeSource& code, LinkAddress pc, uint32_t& work) {
  if (is_behind_push_of_frame_pointer(code, pc, work)) {
    return rule_from_function(code, {pc.value - 1}, pc, work);
  }
  return CodeReading(code, Way::AlongJumps, kMaxInstructionsOutsideRecord, work)
      .run_outside_frame_record(pc);
}

CompactRule rule_from_function(const CodeSource& code, LinkAddress begin, LinkAddress pc,
                               uint32_t& work) {
  return CodeReading(code, Way::AlongJumps, kMaxInstructionsOfFunction, work).run_to(pc, begin);
}

}  // namespace sentry_prof::unwind
