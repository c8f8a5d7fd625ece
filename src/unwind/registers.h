// A thread's registers at one moment, in DWARF numbering.
#pragma once

#include <array>
#include <cstdint>

namespace sentry_prof::unwind {

enum class Arch : uint8_t { X86_64, Aarch64 };

// x86-64: 0..15 general registers, 16 the return address column (psABI, figure 3.36).
// aarch64: 0..30 x0..x30, 31 sp, 32 pc, 34 RA_SIGN_STATE (AADWARF64, section 4.1). Those above, of
// the vectors among them, are not kept. Where the CFA is in units of the vector length (46, VG) the
// frame pointer leads on.
inline constexpr unsigned kRegisterCount = 35;

// DWARF numbers of the registers that every walk needs.
struct ArchRegisters {
  uint8_t stack_pointer;
  uint8_t frame_pointer;
  uint8_t program_counter;
  uint8_t link_register;  // where a call puts the return address; kNoRegister: it pushes it
};
inline constexpr uint8_t kNoRegister = 0xff;
constexpr ArchRegisters arch_registers(Arch arch) {
  return arch == Arch::X86_64 ? ArchRegisters{7, 6, 16, kNoRegister}
                              : ArchRegisters{31, 29, 32, 30};
}

// Unknown registers read as absent: a rule that needs one fails instead of guessing.
class Registers {
 public:
  bool is_known(unsigned reg) const { return reg < kRegisterCount && ((known_ >> reg) & 1) != 0; }
  uint64_t get(unsigned reg) const { return values_[reg]; }  // call only if is_known(reg)
  void set(unsigned reg, uint64_t value) {
    values_[reg] = value;
    known_ |= uint64_t{1} << reg;
  }
  void forget(unsigned reg) { known_ &= ~(uint64_t{1} << reg); }

 private:
  std::array<uint64_t, kRegisterCount> values_{};
  uint64_t known_ = 0;
};

}  // namespace sentry_prof::unwind
