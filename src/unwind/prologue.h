// Code that no file holds, left by how its function began: HotSpot's compilers (C1, C2) keep no
// frame pointer, and the way from the pc to the return is often long, or leads through code that
// is patched. But their functions begin in two ways only, and change the stack pointer nowhere
// else, but for registers that are pushed for a moment between two calls. x86-64.
#pragma once

#include "unwind/code_source.h"
#include "unwind/compact_rule.h"

#include <cstdint>

namespace sentry_prof::unwind {

// What is known of the function at a pc by how it began.
struct Prologue {
  enum class Kind : uint8_t {
    Unread,            // what was looked at could not be read
    NoneNear,          // up to kPrologueReach_bytes behind
    FramePointerKept,  // the function that began last keeps one, and is none of HotSpot's
    Edge,              // where its frame is set up or taken down
    Frame,             // where it has its frame
  };
  Kind kind = Kind::Unread;
  // Of the last two, if it was set already: -XX:+PreserveFramePointer, native methods.
  bool keeps_frame_pointer = false;
  CompactRule rule;   // CodeFromSp, of the last two
  LinkAddress begin;  // of the last three: it began here, or is about to
};

// Of the code at `pc`, which is an instruction's first byte. If `pc_is_exact`, no return address,
// the function may also begin a little ahead: it is entered a few instructions before, where the
// receiver's class is checked. Nothing is below `code_begin`. That the pc belongs to the function
// is likely, no more: what the rule leads to has to be looked at. `work` grows by what it cost.
// Source: MachPrologNode::emit and MacroAssembler::verified_entry (src/hotspot/cpu/x86/x86_64.ad,
// c2_MacroAssembler_x86.cpp), C1_MacroAssembler::build_frame; seen of JDK 17 and 25.
Prologue find_prologue(const CodeSource& code, LinkAddress code_begin, LinkAddress pc,
                       bool pc_is_exact, uint32_t& work);

// Most functions take below 4 KiB. Of 4,700 of a run of javac's 11 took more than 32 KiB, with C1's
// counters for C2 mostly, and one more than 98.
inline constexpr uint64_t kPrologueReach_bytes = 128u << 10;

}  // namespace sentry_prof::unwind
