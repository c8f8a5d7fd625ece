#include "recorder/register_mapping.h"

#include <array>
#include <cstring>

namespace sentry_prof::recorder {

#if defined(__x86_64__)

unwind::Arch native_arch() { return unwind::Arch::X86_64; }

// PERF_REG_X86_AX, BX, CX, DX, SI, DI, BP, SP, IP, FLAGS, CS, SS, DS, ES, FS, GS, R8..R15
static constexpr std::array<uint8_t, 24> kDwarfNumbers = {0,
                                                          3,
                                                          2,
                                                          1,
                                                          4,
                                                          5,
                                                          6,
                                                          7,
                                                          16,
                                                          kNotForDwarf,
                                                          kNotForDwarf,
                                                          kNotForDwarf,
                                                          kNotForDwarf,
                                                          kNotForDwarf,
                                                          kNotForDwarf,
                                                          kNotForDwarf,
                                                          8,
                                                          9,
                                                          10,
                                                          11,
                                                          12,
                                                          13,
                                                          14,
                                                          15};

#elif defined(__aarch64__)

unwind::Arch native_arch() { return unwind::Arch::Aarch64; }

// PERF_REG_ARM64_X0..X29, LR, SP, PC
static constexpr std::array<uint8_t, 33> kDwarfNumbers = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};

#else
#error "sentry-prof samples x86-64 and aarch64 processes"
#endif

std::vector<uint8_t> dwarf_numbers_of(uint64_t register_mask) {
  std::vector<uint8_t> numbers;
  for (unsigned bit = 0; bit < 64; ++bit) {
    if (((register_mask >> bit) & 1) == 0) continue;
    numbers.push_back(bit < kDwarfNumbers.size() ? kDwarfNumbers[bit] : kNotForDwarf);
  }
  return numbers;
}

unwind::Registers to_registers(const sampling::UserRegisters& sampled,
                               const std::vector<uint8_t>& dwarf_numbers) {
  unwind::Registers registers;
  for (size_t i = 0; i < dwarf_numbers.size(); ++i) {
    if ((i + 1) * sizeof(uint64_t) > sampled.words.size()) break;
    if (dwarf_numbers[i] == kNotForDwarf) continue;
    uint64_t value;
    std::memcpy(&value, sampled.words.data() + i * sizeof(value), sizeof(value));
    registers.set(dwarf_numbers[i], value);
  }
  return registers;
}

}  // namespace sentry_prof::recorder
