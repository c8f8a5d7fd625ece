// A row of the unwind table: how to find the caller's registers at one link address.
// Source: DWARF 5, section 6.4.1 "Structure of Call Frame Information".
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "unwind/registers.h"

#include <array>
#include <cstdint>

namespace sentry_prof::unwind {

enum class RuleKind : uint8_t {
  Unspecified,  // no rule given: same value for callee-saved registers, by convention
  Undefined,    // the caller's value cannot be recovered; for the return address: the root
  SameValue,
  AtCfaOffset,    // saved at CFA + offset
  ValCfaOffset,   // is CFA + offset
  Register,       // in another register
  AtExpression,   // saved at the address that the expression computes
  ValExpression,  // is what the expression computes
};

struct RegisterRule {
  RuleKind kind = RuleKind::Unspecified;
  uint16_t source_register = 0;  // Register
  int64_t offset = 0;            // AtCfaOffset, ValCfaOffset
  Bytes expression;              // AtExpression, ValExpression; points into the CFI section

  bool operator==(const RegisterRule&) const = delete;
};

enum class CfaKind : uint8_t { Unset, RegisterOffset, Expression };

struct Row {
  // The row holds for link addresses in [begin, end).
  LinkAddress begin;
  LinkAddress end;
  CfaKind cfa_kind = CfaKind::Unset;
  uint16_t cfa_register = 0;
  int64_t cfa_offset = 0;
  Bytes cfa_expression;
  std::array<RegisterRule, kRegisterCount> rules{};
  uint16_t return_address_register = 0;
  // Of the contiguous piece of a function that the row's FDE covers; zero: not known.
  LinkAddress function_begin;
  bool is_signal_frame =
      false;  // augmentation 'S': the pc found by this row is exact, not a return address
  // Of answers without a row: another time there may be another one. Not to be remembered.
  bool is_provisional = false;
  // What the source did for its answer, whatever that is: about a byte of a program that it ran.
  uint32_t work = 0;
};

// What a source of rows says of one address.
enum class RowStatus : uint8_t {
  Found,
  NoCfi,        // no FDE covers the address, or the image has no CFI
  Root,         // nothing called this code: it is the first of a process (the ELF entry point), or
                // of a stack that a runtime made
  OtherStack,   // the code changes to another stack: its caller's frame is not above its own
  Malformed,    // the CFI breaks its rules
  Unsupported,  // valid, but beyond our limits or of an unknown kind
};

// CFI of one image. Implementations own their bytes; a Row's expressions live as long as they do.
class CfiSource {
 public:
  virtual ~CfiSource() = default;
  // `pc` is the address to look up (already minus one for a return address).
  // Fills `row` only if Found, but for `row.work`, to which every answer adds, and
  // `row.is_provisional`. The first look-up may read and index the image's CFI, within limits of
  // time and memory; later ones allocate nothing and take time in proportion to their work, which
  // is limited as well.
  virtual RowStatus row_at(LinkAddress pc, Row& row) const = 0;
  // Whether all code that is called from there or calls it, on whatever stack, surely keeps frame
  // pointers, but for at most one function that is no part of the program (of a runtime). What
  // compilers do by convention is not sure: false of all but Go's code.
  virtual bool has_frame_pointers(LinkAddress /*pc*/) const { return false; }
};

}  // namespace sentry_prof::unwind
