#include "judge.h"

#include <csignal>
#include <cstddef>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

namespace sentry_prof::judge {
namespace {

// What the kernel pushes for a handler: struct rt_sigframe of arch/x86/include/asm/sigframe.h.
struct SignalFrame {
  uint64_t restorer;
  ucontext_t context;
};

// Instructions from the first that is described as the place it leads to.
constexpr uint64_t kLongestJump = 48;

bool changes_code(const user_regs_struct& at_call) {
  switch (at_call.rax) {
    case SYS_mmap:
      return (at_call.rdx & PROT_EXEC) != 0 || (at_call.r10 & MAP_FIXED) != 0;
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
      return true;
    default:
      return false;
  }
}

}  // namespace

Judge::Judge(const std::vector<std::string>& command, Limits limits)
    : limits_(limits),
      tracee_(command),
      code_(tracee_),
      stack_(tracee_),
      shadow_([this](uint64_t address) { return stack_.word_at(address); },
              [this](uint64_t sp) { return tracee_.mapping_of(sp); }),
      memory_code_(tracee_),
      unwinder_(unwind::Arch::X86_64, unwind::kDefaultRuleCache_bytes, &memory_code_) {
  begin_image();
}

void Judge::begin_image() {
  settle_waiting(true);
  code_.clear();
  stack_.clear();
  space_.reload(tracee_.pid());
  shadow_.on_exec(tracee_.registers().rsp);
  stack_.refresh_all(tracee_.registers().rsp);
}

void Judge::run() {
  judge();
  while (!has_ended_ && verdicts_.judged() < limits_.max_judged) step();
  settle_waiting(true);
  if (!has_ended_) tracee_.kill();
}

void Judge::step() {
  const user_regs_struct before = tracee_.registers();
  const int delivered = std::exchange(pending_signal_, 0);
  const Stop stop = tracee_.step(delivered);
  switch (stop.kind) {
    case StopKind::Ended:
      has_ended_ = true;
      wait_status_ = stop.number;
      return;
    case StopKind::Exec:
      begin_image();
      break;
    case StopKind::Signal:
      pending_signal_ = stop.number;
      on_stepped(before, delivered);
      return;
    case StopKind::Stepped:
      on_stepped(before, delivered);
      break;
  }
}

void Judge::on_stepped(const user_regs_struct& before, int delivered) {
  const user_regs_struct& now = tracee_.registers();
  const auto& callers = shadow_.callers();
  stack_.refresh(now.rsp, callers.empty() ? 0 : callers.back().slot);
  if (delivered != 0 && is_handler_entry(before, delivered)) {
    settle_waiting(true);
    return judge();
  }
  const Instruction instruction = code_.at(before.rip);
  // A fault, or a signal that came first: nothing was run. A loop of rep is one instruction.
  if (now.rip == before.rip && now.rsp == before.rsp) return;

  const bool is_syscall = instruction.kind == InstructionKind::Syscall;
  shadow_.on_step({.instruction = instruction,
                   .pc_before = before.rip,
                   .sp_before = before.rsp,
                   .pc = now.rip,
                   .sp = now.rsp,
                   .is_signal_return = is_syscall && before.rax == SYS_rt_sigreturn});
  settle_waiting(false);
  if (is_syscall && changes_code(before)) {
    space_.reload(tracee_.pid());
    code_.clear();
  }
  const bool may_be_a_trap = is_syscall || instruction.kind == InstructionKind::Breakpoint;
  if (pending_signal_ == 0 && may_be_a_trap && trap_was_sent()) pending_signal_ = SIGTRAP;
  judge();
}

// SIGTRAP is ours unless the command sent it to itself, or ran int3.
bool Judge::trap_was_sent() const {
  siginfo_t info{};
  if (::ptrace(PTRACE_GETSIGINFO, tracee_.pid(), nullptr, &info) != 0) return false;
  return info.si_signo == SIGTRAP &&
         (info.si_code == SI_USER || info.si_code == SI_TKILL || info.si_code == SI_KERNEL);
}

bool Judge::is_handler_entry(const user_regs_struct& before, int signal) {
  const user_regs_struct& now = tracee_.registers();
  SignalFrame frame{};
  const auto bytes = std::as_writable_bytes(std::span(&frame, 1));
  const size_t needed = offsetof(SignalFrame, context.uc_mcontext.fpregs);
  if (now.rdi != static_cast<uint64_t>(signal) || tracee_.read(now.rsp, bytes) < needed) {
    return false;
  }
  const auto& saved = frame.context.uc_mcontext.gregs;
  if (static_cast<uint64_t>(saved[REG_RSP]) != before.rsp) return false;
  const stack_t& alternate = frame.context.uc_stack;
  const auto low = reinterpret_cast<uint64_t>(alternate.ss_sp);
  const bool has_alternate = (alternate.ss_flags & SS_DISABLE) == 0;
  shadow_.on_signal(
      {.sp = now.rsp,
       .restorer = frame.restorer,
       .interrupted_pc = static_cast<uint64_t>(saved[REG_RIP]),
       .saved_pc_at =
           now.rsp + offsetof(SignalFrame, context.uc_mcontext.gregs) + REG_RIP * sizeof(greg_t),
       .interrupted_sp = before.rsp,
       .alternate = has_alternate ? StackRegion{low, low + alternate.ss_size} : StackRegion{}});
  return true;
}

void Judge::judge() {
  ++steps_;
  if (steps_ <= limits_.skipped || steps_ % limits_.every != 0) return;
  const unwind::Registers registers = walk_registers(tracee_.registers());
  if (judge_with(registers, false)) return;
  stack_.refresh_all(tracee_.registers().rsp);
  shadow_.reread_interrupted();
  judge_with(registers, true);
}

bool Judge::judge_with(const unwind::Registers& registers, bool is_final) {
  const user_regs_struct& now = tracee_.registers();
  const unwind::Walk walk = unwinder_.walk(registers, stack_.snapshot(now.rsp), space_.modules());
  Comparison comparison = compare(walk, shadow_.callers(), now.rip, space_);
  if (comparison.difference == Difference::None) {
    verdicts_.add_agreement();
    return true;
  }
  if (!is_final) return false;
  if (was_rewritten(comparison)) comparison.difference = Difference::Rewritten;
  const size_t before = comparison.frame == 0 ? 0 : comparison.frame - 1;
  const uint64_t culprit = before == 0 ? now.rip : space_.runtime_pc(walk.frames[before]);
  Waiting waiting{.comparison = comparison,
                  .culprit = space_.place_of(culprit),
                  .leaf_pc = now.rip,
                  .step = steps_,
                  .frames = {}};
  for (const unwind::WalkedFrame& frame : walk.frames) {
    waiting.frames.push_back(space_.runtime_pc(frame));
  }
  waiting_.push_back(std::move(waiting));
  return false;
}

// libc describes the last instructions of longjmp and swapcontext as if the jump had been made: the
// caller is the place where it leads. Whether a walk that disagrees is of that kind is known a few
// instructions later: control is where the walk said, its callers are those of the walk, and
// neither a call nor a return went there.
void Judge::settle_waiting(bool is_last_chance) {
  if (waiting_.empty()) return;
  const bool is_over = is_last_chance || shadow_.last_move() != ShadowStack::Move::Other;
  for (Waiting& walk : waiting_) {
    const bool is_too_old = steps_ - walk.step > kLongestJump;
    const bool has_arrived = !is_over && has_arrived_at(walk.frames);
    if (!has_arrived && !is_over && !is_too_old) continue;
    if (has_arrived) walk.comparison.difference = Difference::AheadOfJump;
    verdicts_.add(walk.comparison, walk.culprit, walk.leaf_pc, space_);
    walk.is_settled = true;
  }
  std::erase_if(waiting_, [](const Waiting& walk) { return walk.is_settled; });
}

bool Judge::was_rewritten(const Comparison& comparison) const {
  const auto& callers = shadow_.callers();
  if (comparison.difference != Difference::WrongFrame || comparison.frame == 0) return false;
  return stack_.word_at(callers[callers.size() - comparison.frame].slot) == comparison.got;
}

bool Judge::has_arrived_at(std::span<const uint64_t> frames) const {
  const auto& callers = shadow_.callers();
  if (frames.size() != callers.size() + 2 || frames[1] != tracee_.registers().rip) return false;
  for (size_t i = 0; i < callers.size(); ++i) {
    if (frames[2 + i] != callers[callers.size() - 1 - i].pc) return false;
  }
  return true;
}

unwind::Registers Judge::walk_registers(const user_regs_struct& r) {
  // In the order of their DWARF numbers (x86-64 psABI, figure 3.36).
  const unsigned long long values[] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                                       r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
  unwind::Registers registers;
  unsigned number = 0;
  for (const unsigned long long value : values) registers.set(number++, value);
  return registers;
}

}  // namespace sentry_prof::judge
