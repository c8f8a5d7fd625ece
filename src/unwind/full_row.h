// One frame by a whole row: every kind of rule, over all the registers that are known.
#pragma once

#include "base/address.h"
#include "unwind/registers.h"
#include "unwind/row.h"
#include "unwind/stack_snapshot.h"

namespace sentry_prof::unwind {

enum class RowOutcome : uint8_t {
  Stepped,
  Root,       // the return address is undefined
  BadMemory,  // at failed_address
  UnknownRegister,
  Malformed,
  Unsupported,
};

struct RowResult {
  RowOutcome outcome = RowOutcome::Malformed;
  RuntimeAddress failed_address;
  Registers caller;   // if Stepped: pc and sp are known, of the others what could be recovered
  uint32_t work = 0;  // steps of expressions, whatever the outcome
};

// What the callee's frame is, as far as the row does not say it.
struct CalleeFrame {
  const Registers& registers;
  // The leaf. Compilers do not describe the pop of a register in an epilogue: its slot then lies
  // below the stack pointer, outside the snapshot, and the register holds the value already.
  bool is_leaf = false;
};

// Fails only if CFA, pc or sp cannot be found; another register whose rule fails becomes unknown.
// Registers without a rule keep their values if a call preserves them, or over a signal frame.
RowResult apply_row(const Row& row, Arch arch, const CalleeFrame& callee,
                    const StackSnapshot& stack);

// True if a word at `address` is one that the leaf may have popped already: in the 128 bytes below
// its stack pointer (the red zone; x86-64 psABI, section 3.2.2).
constexpr bool is_in_red_zone(uint64_t address, uint64_t stack_pointer) {
  return address < stack_pointer && stack_pointer - address <= 128;
}

}  // namespace sentry_prof::unwind
