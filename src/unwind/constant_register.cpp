#include "unwind/constant_register.h"

#include <algorithm>
#include <array>
#include <bit>

namespace sentry_prof::unwind {
namespace {

constexpr std::array<uint8_t, 2> kLoadsR11{0x49, 0xbb};             // mov $value,%r11, of 64 bits
constexpr std::array<uint8_t, 3> kAddsByteToR11{0x4d, 0x8d, 0x5b};  // lea x(%r11),%r11
constexpr std::array<uint8_t, 3> kAddsToR11{0x4d, 0x8d, 0x9b};      // likewise, x of 32 bits
constexpr std::array<uint8_t, 3> kJumpsByR11{0x41, 0xff, 0xe3};     // jmp *%r11

// What stands behind `opcode`; none if that is not there.
template <size_t N>
std::optional<ByteReader> operand_behind(Bytes instruction, const std::array<uint8_t, N>& opcode) {
  const bool is_it = instruction.size() >= N &&
                     std::ranges::equal(instruction.first(N), std::as_bytes(std::span(opcode)));
  return is_it ? std::optional(ByteReader(instruction.subspan(N), std::endian::little))
               : std::nullopt;
}

}  // namespace

void ConstantRegister::apply(Bytes instruction, const X86Instruction& effect) {
  const bool is_written = (effect.writes >> kX86R11 & 1) != 0;
  if (!is_written && effect.effect != X86Effect::CallsKernel) return;
  if (auto value = operand_behind(instruction, kLoadsR11)) {
    value_ = value->u64();
  } else if (auto byte = operand_behind(instruction, kAddsByteToR11); byte && value_) {
    *value_ += static_cast<uint64_t>(int64_t{static_cast<int8_t>(byte->u8())});
  } else if (auto displacement = operand_behind(instruction, kAddsToR11); displacement && value_) {
    *value_ += static_cast<uint64_t>(int64_t{displacement->i32()});
  } else {
    value_.reset();
  }
}

std::optional<uint64_t> ConstantRegister::target_of_jump(Bytes instruction) const {
  return operand_behind(instruction, kJumpsByR11) ? value_ : std::nullopt;
}

}  // namespace sentry_prof::unwind
