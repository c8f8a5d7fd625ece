// Code that no file holds, left by how its function began: HotSpot's compilers (C1, C2) keep no
// frame pointer, and the way from the pc to the return is often long, or leads through code that
// is patched. But their functions begin in two ways only, and change the stack pointer nowhere
// else, but for registers that are pushed for a moment between two calls. x86-64.
#pragma once

#include "unwind/code_source.h"
#include "unwind/compact_rule.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

// CodeFromSp for the code at `pc`, which is an instruction's first byte, by the nearest beginning
// of such a function up to kPrologueReach_bytes behind. Also a little ahead, if `pc_is_exact`, no
// return address: functions are entered a few instructions before their beginning, where the
// receiver's class is checked. NoCfi if there is none, or if a function that keeps a frame pointer
// begins nearer. Null if what was looked at could not be read; nothing is below `code_begin`. That
// the pc belongs to the function is likely, no more: what the rule leads to has to be looked at.
// `work` grows by what it cost. Source: MachPrologNode::emit and MacroAssembler::verified_entry
// (src/hotspot/cpu/x86/x86_64.ad, c2_MacroAssembler_x86.cpp), C1_MacroAssembler::build_frame; seen
// of JDK 17 and 25.
std::optional<CompactRule> rule_from_prologue(const CodeSource& code, LinkAddress code_begin,
                                              LinkAddress pc, bool pc_is_exact, uint32_t& work);

// Most functions of C2's take below 4 KiB. It inlines up to 8,000 bytes of bytecode
// (HugeMethodLimit) and more.
inline constexpr uint64_t kPrologueReach_bytes = 32u << 10;

}  // namespace sentry_prof::unwind
