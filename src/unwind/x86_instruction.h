// An instruction of x86-64: how long it is, and what it does to the stack pointer, to the frame
// pointer and to where the code goes on. Nothing else of it is told.
// Source: Intel SDM, volume 2, appendix A (opcode maps) and chapters 3 to 5.
#pragma once

#include "unwind/x86_encoding.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

enum class X86Effect : uint8_t {
  None,
  Push,           // of anything but the frame pointer, eight bytes
  PushFp,         // push %rbp
  Pop,            // into anything but these two registers
  PopFp,          // pop %rbp
  AddToSp,        // add, sub, lea x(%rsp),%rsp: `operand` bytes
  SpFromFp,       // mov %rbp,%rsp, lea x(%rbp),%rsp: %rbp + `operand`
  FpFromSp,       // mov %rsp,%rbp, lea x(%rsp),%rbp: %rsp + `operand`
  SavesFp,        // mov %rbp,x(%rsp): at %rsp + `operand`
  RestoresFp,     // mov x(%rsp),%rbp: from there
  FollowsFp,      // mov (%rbp),%rbp: from where a frame record has the caller's
  Leave,          // mov %rbp,%rsp; pop %rbp
  OverwritesSp,   // with what is not told
  OverwritesFp,   // likewise
  Return,         // ret, which takes `operand` bytes more off the stack
  Jump,           // to the end of the instruction + `operand`
  Branch,         // there or on
  JumpByPointer,  // jmp *x(%rip): to another function, as PLT entries and tail calls do
  JumpElsewhere,  // jmp by a register or other memory: to another function, or by a table in this
  Traps,          // nothing comes behind it: hlt, ud2, int3
  Stops,          // nothing that can be told comes behind it: jmp by a table, enter
};

struct X86Instruction {
  uint8_t size_bytes = 0;
  X86Effect effect = X86Effect::None;
  int32_t operand = 0;

  bool operator==(const X86Instruction&) const = default;
};

// The instruction that `code` begins with; none if it is no instruction of 64-bit code, or `code`
// ends before it does.
std::optional<X86Instruction> decode_x86(Bytes code);

}  // namespace sentry_prof::unwind
