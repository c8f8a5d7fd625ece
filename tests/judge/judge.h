// Steps a command, and judges a walk at every instruction.
#pragma once

#include "address_space.h"
#include "shadow_stack.h"
#include "stack_mirror.h"
#include "tracee.h"
#include "verdicts.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sentry_prof::judge {

struct Limits {
  uint64_t max_judged = UINT64_MAX;
  uint64_t skipped = 0;  // instructions before the first that is judged
  uint64_t every = 1;
};

class Judge {
 public:
  Judge(const std::vector<std::string>& command, Limits limits);

  // Until the command ends, or enough was judged; then it is killed.
  void run();

  const Verdicts& verdicts() const { return verdicts_; }
  const AddressSpace& space() const { return space_; }
  const ShadowStack& shadow() const { return shadow_; }
  uint64_t steps() const { return steps_; }
  int wait_status() const { return wait_status_; }

 private:
  void begin_image();
  void step();
  void on_stepped(const user_regs_struct& before, int delivered);
  bool is_handler_entry(const user_regs_struct& before, int signal);
  void judge();
  void settle_waiting(bool is_last_chance);
  bool was_rewritten(const Comparison& comparison) const;
  bool has_arrived_at(std::span<const uint64_t> frames) const;
  bool judge_with(const unwind::Registers& registers, bool is_final);
  bool trap_was_sent() const;
  static unwind::Registers walk_registers(const user_regs_struct& registers);

  // A walk that disagrees, until it is known what the code was about to do.
  struct Waiting {
    Comparison comparison;
    AddressSpace::Place culprit;
    uint64_t leaf_pc = 0;
    uint64_t step = 0;
    std::vector<uint64_t> frames;  // runtime pcs, leaf first
    bool is_settled = false;
  };

  Limits limits_;
  Tracee tracee_;
  CodeCache code_;
  StackMirror stack_;
  ShadowStack shadow_;
  AddressSpace space_;
  MemoryCode memory_code_;
  unwind::Unwinder unwinder_;
  Verdicts verdicts_;
  std::vector<Waiting> waiting_;
  uint64_t steps_ = 0;
  int pending_signal_ = 0;
  int wait_status_ = 0;
  bool has_ended_ = false;
};

}  // namespace sentry_prof::judge
