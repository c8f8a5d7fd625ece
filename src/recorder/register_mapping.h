// The kernel's register numbers -> DWARF's.
#pragma once

#include "sampling/event.h"
#include "unwind/registers.h"

#include <cstdint>
#include <vector>

namespace sentry_prof::recorder {

// The architecture this program was built for: that of the processes it samples.
unwind::Arch native_arch();

// DWARF numbers of the registers in a sample, in record order: one for each bit of `register_mask`
// (perf_event_attr::sample_regs_user). kNotForDwarf for those without one.
// Source: asm/perf_regs.h; System V psABI x86-64, figure 3.36; AADWARF64, table 1.
inline constexpr uint8_t kNotForDwarf = 0xff;
std::vector<uint8_t> dwarf_numbers_of(uint64_t register_mask);

// Registers of a sample. Words that the record lacks stay unknown.
unwind::Registers to_registers(const sampling::UserRegisters& sampled,
                               const std::vector<uint8_t>& dwarf_numbers);

}  // namespace sentry_prof::recorder
