// What the machine code itself says where no unwind information does: read on from a pc to the
// return, it tells how much is taken off the stack until then, and from where the frame pointer is
// restored. x86-64 only: aarch64 has the link register and frame records.
#pragma once

#include "unwind/code_source.h"
#include "unwind/compact_rule.h"

#include <cstdint>

namespace sentry_prof::unwind {

// A rule of CodeFromSp or CodeFromFp for the code at `pc`, an instruction's first byte; NoCfi if
// none could be found: no return within kMaxInstructionsRead, code that cannot be read, a stack
// pointer that comes from elsewhere. It holds as far as the compiler's code is as compilers make
// it: a call that does not return may be followed by another function, so what the rule leads to
// has to be looked at (Walker::step_by_code). RootBehindNoCall if all ways from `pc` were read, and
// each ends in an instruction that traps or goes in circles. `work` grows by what it cost.
CompactRule rule_from_code(const CodeSource& code, LinkAddress pc, uint32_t& work);

// The same from code that goes straight to its return, in a few instructions: that much leaves
// nothing to guess but whether a call returns.
CompactRule rule_from_straight_code(const CodeSource& code, LinkAddress pc, uint32_t& work);

// Functions of libc have up to some thousand instructions, but the way to the next return is short.
inline constexpr unsigned kMaxInstructionsRead = 1024;
// An epilogue that restores all registers, and what is done with the result before.
inline constexpr unsigned kMaxStraightInstructions = 16;

}  // namespace sentry_prof::unwind
