// Runs call frame instructions: from a CIE and an FDE to the row of one address.
// Source: DWARF 5, section 6.4.2 (instructions), 6.4.3 (execution order), table 7.29 (opcodes);
// LSB 5.0 Core, section 10.5.1.2 (GNU additions); AADWARF64 (negate_ra_state).
#pragma once

#include "elf/cfi_entry.h"
#include "unwind/row.h"

namespace sentry_prof::elf {

// `fde.covers(pc)` must hold. Fills `row` only if Ok, but adds to `row.work` always: the bytes of
// both programs that were run, and some for each state that they remember or restore. Time is
// linear in that, memory is fixed. Registers from unwind::kRegisterCount to CfiLimits::kRegister
// are read over; a row whose CFA or return address needs one is Unsupported. The row's expressions
// point into the section.
CfiStatus evaluate_row(const FrameSection& section, const Cie& cie, const Fde& fde, uint64_t pc,
                       unwind::Row& row);

}  // namespace sentry_prof::elf
