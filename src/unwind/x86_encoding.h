// An instruction of x86-64 taken apart: prefixes, opcode, operands. What it does is told in
// x86_instruction.h.
// Source: Intel SDM, volume 2, chapter 2 (formats, VEX, EVEX) and appendix A (opcode maps); AMD64
// Architecture Programmer's Manual, volume 6 (XOP).
#pragma once

#include "base/byte_reader.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

enum class X86Map : uint8_t { OneByte, Escape0F, Escape0F38, Escape0F3A, Other };

struct X86Encoding {
  size_t size_bytes = 0;
  X86Map map = X86Map::OneByte;
  uint8_t opcode = 0;
  bool is_vector = false;   // VEX, EVEX or XOP
  unsigned vector_reg = 0;  // their third register
  bool has_16_bit_operand = false;
  bool has_32_bit_address = false;
  bool is_scalar = false;  // 0xf2 or 0xf3, or what stands for them in VEX
  bool has_rex = false, rex_w = false, rex_r = false, rex_x = false, rex_b = false;
  // ModR/M. mod 3: `rm` is a register, else a memory operand.
  unsigned mod = 0, reg = 0, rm = 0;
  // The register of a memory operand that has only this and a displacement.
  std::optional<unsigned> base;
  int32_t displacement = 0;
  int32_t immediate = 0;  // of one, two (unsigned) or four bytes

  bool is_register() const { return mod == 3; }
  unsigned register_in_opcode() const { return (opcode & 7u) + (rex_b ? 8 : 0); }
  bool moves_16_bits() const { return has_16_bit_operand && !rex_w; }
};

inline constexpr size_t kLongestX86Instruction_bytes = 15;

// The instruction that `code` begins with; none if it is no instruction of 64-bit code, or `code`
// ends before it does.
std::optional<X86Encoding> read_x86_encoding(Bytes code);

// ModR/M, SIB and displacement, which `operand` begins with; it is not empty. Of a SIB that is cut
// off, what can be told.
size_t x86_operand_bytes(Bytes operand);

}  // namespace sentry_prof::unwind
