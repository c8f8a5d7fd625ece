// DWARF expressions as call frame information uses them, evaluated within fixed bounds.
// Source: DWARF 5, sections 2.5 (operations) and 6.4.2 (which of them CFI may use).
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "unwind/registers.h"
#include "unwind/stack_snapshot.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

// Expressions of real CFI take below twenty steps and five stack entries. The bounds are there for
// those that loop or push for ever; libunwindstack stops after as many steps.
inline constexpr unsigned kMaxExpressionSteps = 1000;
inline constexpr unsigned kMaxExpressionDepth = 64;

enum class ExpressionStatus : uint8_t {
  Ok,
  BadMemory,        // a dereference outside the snapshot; see failed_address
  UnknownRegister,  // the value of a register is needed that is not known
  Malformed,    // stack underflow, a branch out of the expression, an operand cut off, empty result
  Unsupported,  // an unknown operation, one that CFI may not use, or a bound exceeded
};

struct ExpressionResult {
  ExpressionStatus status = ExpressionStatus::Malformed;
  uint64_t value = 0;             // the top of the stack, if Ok
  RuntimeAddress failed_address;  // if BadMemory
  unsigned steps = 0;             // that were taken, whatever came of them
};

// `initial` is pushed first: the CFA for the rules of registers, nothing for the CFA itself.
// Little-endian operands and 64-bit addresses. Reads memory only through `stack`.
ExpressionResult evaluate_expression(Bytes expression, const Registers& registers,
                                     const StackSnapshot& stack, std::optional<uint64_t> initial);

}  // namespace sentry_prof::unwind
