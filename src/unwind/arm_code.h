// aarch64 code where neither rows nor frame records tell whose return address is in the link
// register: read for just these two questions. Source: Arm ARM (DDI 0487), C4.1 "A64 instruction
// set encoding" and C6.2.
#pragma once

#include "unwind/code_source.h"
#include "unwind/compact_rule.h"

#include <cstdint>

namespace sentry_prof::unwind {

// At an exact pc whose row goes by the frame pointer: before LLVM 15 no row tells that an epilogue
// has restored it and the link register (its tables were for calls only). If no more is left of the
// function than to restore other registers, give its room back and return, the rule is LinkFromSp;
// else, or where the code cannot be read, NoCfi. `work` grows by what it cost.
CompactRule rule_of_epilogue(const CodeSource& code, LinkAddress pc, uint32_t& work);

// Whether no instruction in [begin, pc) keeps the link register in memory. What calls has to,
// before it does. False where that range is empty, long (4 KiB), or cannot be read.
bool keeps_no_link_register(const CodeSource& code, LinkAddress begin, LinkAddress pc,
                            uint32_t& work);

}  // namespace sentry_prof::unwind
