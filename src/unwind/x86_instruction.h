// An instruction of x86-64: how long it is, and what it does to the stack pointer, to the frame
// pointer, to where the code goes on, and which other registers it writes of those that the stack
// pointer and jumps come from (kX86ToldRegisters). Nothing else is told;
// nor is what instructions write that user code hardly has: of half precision to a general register
// (EVEX map 5), of the kernel (sldt, lfs, mov %cr3), cmpccxadd.
// Source: Intel SDM, volume 2, appendix A (opcode maps) and chapters 3 to 5.
#pragma once

#include "unwind/x86_encoding.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

enum class X86Effect : uint8_t {
  None,
  Push,            // of anything but the frame pointer and %r10, eight bytes
  PushFp,          // push %rbp
  Pop,             // into anything but these two registers and %r10
  PopFp,           // pop %rbp
  AddToSp,         // add, sub, lea x(%rsp),%rsp: `operand` bytes
  SpFromFp,        // mov %rbp,%rsp, lea x(%rbp),%rsp: %rbp + `operand`
  SpFromRegister,  // mov or lea from `source`, that + `operand`
  SpFromStack,     // pop %rsp, mov x(%rsp),%rsp: the word at %rsp + `operand`
  FpFromSp,        // mov %rsp,%rbp, lea x(%rsp),%rbp: %rsp + `operand`
  SavesFp,         // mov %rbp,x(%rsp): at %rsp + `operand`
  RestoresFp,      // mov x(%rsp),%rbp: from there
  FollowsFp,       // mov (%rbp),%rbp: from where a frame record has the caller's
  LoadsR10,        // mov x(%rbp),%r10: the word at %rbp + `operand`
  PushR10,         // push %r10
  PopR10,          // pop %r10
  Leave,           // mov %rbp,%rsp; pop %rbp
  OverwritesSp,    // with what is not told
  OverwritesFp,    // likewise
  Return,          // ret, which takes `operand` bytes more off the stack
  Jump,            // to the end of the instruction + `operand`
  Branch,          // there or on
  JumpByPointer,   // jmp *x(%rip): to another function, as PLT entries and tail calls do
  JumpElsewhere,   // jmp by a register or other memory: to another function, or by a table in this
  CallsKernel,     // syscall, sysenter, int: it may not come back (rt_sigreturn)
  Traps,           // hlt, ud2, int3: compilers put them where nothing comes behind
  Stops,           // nothing that can be told comes behind it: jmp by a table, enter
};

// A bit each by their numbers, which are DWARF's, too, for those that are told of.
using X86Registers = uint16_t;
// %rbx and %r12 to %r15, which calls preserve (psABI, section 3.2.1): assembly keeps the stack
// pointer in them.
inline constexpr X86Registers kX86KeptRegisters = 0xf008;
// gcc's functions that realign the stack have in it where that was before (i386.cc, find_drap_reg),
// and save it as a local variable. Calls overwrite it.
inline constexpr unsigned kX86R10 = 10;
inline constexpr X86Registers kX86FollowedRegisters = kX86KeptRegisters | 1u << kX86R10;
// For whatever is needed for a moment (psABI, figure 3.4): JIT compilers load addresses into it, to
// which they jump. Calls and the kernel overwrite it.
inline constexpr unsigned kX86R11 = 11;
inline constexpr X86Registers kX86ToldRegisters = kX86FollowedRegisters | 1u << kX86R11;

struct X86Instruction {
  uint8_t size_bytes = 0;
  X86Effect effect = X86Effect::None;
  X86Registers writes = 0;  // of kX86ToldRegisters
  int32_t operand = 0;
  uint8_t source = 0;  // of SpFromRegister: the number of one of kX86FollowedRegisters

  bool operator==(const X86Instruction&) const = default;
};

// The instruction that `code` begins with; none if it is no instruction of 64-bit code, or `code`
// ends before it does.
std::optional<X86Instruction> decode_x86(Bytes code);

}  // namespace sentry_prof::unwind
