// The callers of a thread, from the calls and returns that were seen. Pure.
#pragma once

#include "instruction.h"

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace sentry_prof::judge {

// Memory that a stack lies in, [low, high).
struct StackRegion {
  uint64_t low = 0;
  uint64_t high = 0;
  bool holds(uint64_t address) const { return address >= low && address < high; }
};

// What one instruction did.
struct Step {
  Instruction instruction;
  uint64_t pc_before = 0;
  uint64_t sp_before = 0;
  uint64_t pc = 0;
  uint64_t sp = 0;
  bool is_signal_return = false;  // it was the system call rt_sigreturn
};

// What the kernel left on the stack for a signal handler that is about to begin.
struct SignalDelivery {
  uint64_t sp = 0;              // of the handler; the restorer's address lies there
  uint64_t restorer = 0;        // where the handler returns to
  uint64_t interrupted_pc = 0;  // as the frame has it
  uint64_t saved_pc_at = 0;     // where it has it
  uint64_t interrupted_sp = 0;
  StackRegion alternate;  // sigaltstack's, or empty
};

class ShadowStack {
 public:
  struct Caller {
    uint64_t slot = 0;         // where the return address lies; of an interrupted frame, its place
    uint64_t pc = 0;           // runtime; a return address, or exact where a signal interrupted
    uint64_t saved_pc_at = 0;  // of an interrupted frame: where the kernel will read its pc again
    size_t region = 0;
    bool is_interrupted = false;
    bool is_lifted = false;  // the return address was popped into a register
  };
  using ReadWord = std::function<uint64_t(uint64_t address)>;
  using FindRegion = std::function<StackRegion(uint64_t sp)>;

  ShadowStack(ReadWord read_word, FindRegion find_region)
      : read_word_(std::move(read_word)), find_region_(std::move(find_region)) {}

  void on_exec(uint64_t sp);
  void on_step(const Step& step);
  void on_signal(const SignalDelivery& signal);
  // A handler may have written another pc into its frame: the code goes on there.
  void reread_interrupted();

  // What the last step was. A jump to another place of the stack is neither.
  enum class Move : uint8_t { Other, Call, Return };
  Move last_move() const { return last_move_; }

  // Outermost first.
  const std::vector<Caller>& callers() const { return callers_; }

  // Returns that did not go where the call came from; stacks changed for others.
  uint64_t odd_returns() const { return odd_returns_; }
  uint64_t stack_changes() const { return stack_changes_; }

 private:
  void push_call(const Step& step);
  void return_from_signal(uint64_t sp);
  void change_region(uint64_t sp);
  bool drop_stale(uint64_t sp);
  void drop_passed(const Step& step);
  bool settle_lifted(const Step& step);
  size_t region_of(uint64_t sp);

  ReadWord read_word_;
  FindRegion find_region_;
  std::vector<Caller> callers_;
  std::vector<StackRegion> regions_;
  size_t region_ = 0;
  std::map<size_t, std::vector<Caller>> left_behind_;  // by region: of stacks that may come back
  Move last_move_ = Move::Other;
  uint64_t odd_returns_ = 0;
  uint64_t stack_changes_ = 0;
};

}  // namespace sentry_prof::judge
