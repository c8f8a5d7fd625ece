#include "recorder/register_mapping.h"

#include "support/catch2.h"

#include <array>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

#if defined(__x86_64__)

// asm/perf_regs.h: AX 0, BX 1, CX 2, DX 3, SI 4, DI 5, BP 6, SP 7, IP 8, FLAGS 9, R8 16 .. R15 23.
TEST_CASE("Sampled registers get the psABI's DWARF numbers") {
  const auto numbers = dwarf_numbers_of(0xff01ff);
  CHECK(numbers == std::vector<uint8_t>{0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15});
}

TEST_CASE("A register without a DWARF number takes its word and is dropped") {
  const auto numbers = dwarf_numbers_of((1 << 8) | (1 << 9) | (1 << 16));
  const std::array<uint64_t, 3> words = {0x1111, 0x246, 0x8888};
  sampling::UserRegisters sampled{true, false, std::as_bytes(std::span(words))};
  const auto registers = to_registers(sampled, numbers);
  CHECK(registers.get(16) == 0x1111);
  CHECK(registers.get(8) == 0x8888);
  CHECK_FALSE(registers.is_known(7));
}

#elif defined(__aarch64__)

// asm/perf_regs.h: X0 0 .. X29 29, LR 30, SP 31, PC 32: the numbers that DWARF has, too.
TEST_CASE("Sampled registers get AADWARF64's numbers") {
  const auto numbers = dwarf_numbers_of(0x1'ffff'ffff);
  REQUIRE(numbers.size() == 33);
  for (unsigned i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == i);
}

TEST_CASE("A register without a DWARF number takes its word and is dropped") {
  const auto numbers = dwarf_numbers_of((uint64_t{1} << 32) | (uint64_t{1} << 46));  // PC, VG
  const std::array<uint64_t, 2> words = {0x1111, 4};
  sampling::UserRegisters sampled{true, false, std::as_bytes(std::span(words))};
  const auto registers = to_registers(sampled, numbers);
  CHECK(registers.get(32) == 0x1111);
}

#endif

TEST_CASE("Words that a record lacks stay unknown") {
  const std::array<uint64_t, 1> words = {5};
  sampling::UserRegisters sampled{true, false, std::as_bytes(std::span(words))};
  const auto registers = to_registers(sampled, {7, 16});
  CHECK(registers.is_known(7));
  CHECK_FALSE(registers.is_known(16));
}
