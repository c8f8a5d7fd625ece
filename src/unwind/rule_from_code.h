// What the machine code itself says where no unwind information does: read on from a pc to the
// return, it tells how much is taken off the stack until then, and from where the frame pointer is
// restored. x86-64 only: aarch64 has the link register and frame records.
#pragma once

#include "unwind/code_source.h"
#include "unwind/code_stretches.h"
#include "unwind/compact_rule.h"

#include <cstdint>

namespace sentry_prof::unwind {

// A rule of one of the kinds Code... for the code at `pc`, an instruction's first
// byte; NoCfi if none could be found: no return within `max_instructions`, code that cannot be
// read, a stack pointer that comes from elsewhere. It holds as far as the compiler's code is as
// compilers make it: a call that does not return may be followed by another function, so what the
// rule leads to has to be looked at (Walker::step_by_code_to). RootBehindNoCall if all ways from
// `pc` were read, and each ends in an instruction that traps. `work` grows by what it cost.
CompactRule rule_from_code(const CodeSource& code, LinkAddress pc, uint32_t& work,
                           unsigned max_instructions);

// The same of code that no file holds, by runtime address. It may jump to an address that it loads.
// (An image's code is read as it was linked, before such addresses are relocated.)
CompactRule rule_from_memory_code(const CodeSource& code, RuntimeAddress pc, uint32_t& work);

// The same where the return that was found, if any, leads to no caller: what stands behind a jump
// that leads where nothing tells is likely to be of the same function (QEMU's blocks end so, and
// have their exit there).
CompactRule rule_past_jumps(const CodeSource& code, RuntimeAddress pc, uint32_t& work);

// rule_from_code(), and how far the rule holds: an empty stretch if there is no return, or if the
// instruction itself changes what the rule tells of. `known` is a stretch of the same code that
// contains `pc` or begins behind it, or is empty: reading on need go no further than there.
CodeStretch stretch_from_code(const CodeSource& code, LinkAddress pc, uint32_t& work,
                              unsigned max_instructions, const CodeStretch& known);

// rule_from_code() from code that goes straight to its return, in a few instructions: that much
// leaves nothing to guess but whether a call returns.
CompactRule rule_from_straight_code(const CodeSource& code, LinkAddress pc, uint32_t& work);

// rule_from_straight_code() where branches may lie between, which are not taken: HotSpot's code
// looks between the end of its frame and the return whether it should stop (JEP 376). A jump by a
// pointer is none of a function's end here: it may go by a table.
CompactRule rule_from_near_return(const CodeSource& code, LinkAddress pc, uint32_t& work);

// Where the frame pointer is its caller's, in code that keeps one: a few instructions before it is
// set up (push %rbp; mov %rsp,%rbp), between the two, and from where it was restored to the return.
// NoCfi elsewhere. For a pc that is no return address.
CompactRule rule_outside_frame_record(const CodeSource& code, LinkAddress pc, uint32_t& work);

// For the code at `pc` in the function that begins at `begin`, by what was put on the stack from
// there on: CodeFromSp; NoCfi if no way was found, or the stack pointer is not known. For code that
// does not return, of which reading on tells nothing. It holds if the function was entered at
// `begin`: what the rule leads to has to be behind a call that may lead there.
CompactRule rule_from_function(const CodeSource& code, LinkAddress begin, LinkAddress pc,
                               uint32_t& work);

// The longest way that was met: OpenBLAS's dgemm_kernel_ZEN, 5,500 instructions with one return,
// 0.2 ms. Of code in a file the rule is kept.
inline constexpr unsigned kMaxInstructionsOfFile = 8192;
// From a function's beginning. A walk may try several, and what it finds is kept only where the pc
// was met: busybox's longest way is 700.
inline constexpr unsigned kMaxInstructionsOfFunction = 2048;
// Of other code it is read with each walk. The way to the next return is mostly short.
inline constexpr unsigned kMaxInstructionsOfMemory = 1024;
// An epilogue that restores all registers, and what is done with the result before.
inline constexpr unsigned kMaxStraightInstructions = 16;
// V8's functions first look whether they were thrown away (4 instructions), and some are entered
// by a jump; endbr64. At their ends they compare the number of arguments, branch and return.
inline constexpr unsigned kMaxInstructionsOutsideRecord = 8;
// HotSpot's: add to the stack pointer, pop, vzeroupper, compare, branch, return.
inline constexpr unsigned kMaxEpilogueInstructions = 6;

}  // namespace sentry_prof::unwind
