#include "instruction.h"

namespace sentry_prof::judge {
namespace {

bool is_prefix(uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:  // segments; also notrack
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return false;
  }
}

bool is_string_instruction(uint8_t opcode) {
  return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf) ||
         (opcode >= 0x6c && opcode <= 0x6f);
}

// Bytes of ModR/M, SIB and displacement.
uint8_t operand_length(uint8_t modrm, uint8_t sib) {
  const unsigned mod = modrm >> 6;
  const unsigned rm = modrm & 7;
  if (mod == 3) return 1;
  const bool has_sib = rm == 4;
  unsigned displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  if (mod == 0 && (rm == 5 || (has_sib && (sib & 7) == 5))) displacement = 4;
  return static_cast<uint8_t>(1 + (has_sib ? 1 : 0) + displacement);
}

}  // namespace

Instruction instruction_at(Bytes code) {
  const auto byte_at = [&](size_t i) {
    return i < code.size() ? std::to_integer<uint8_t>(code[i]) : uint8_t{0};
  };
  size_t at = 0;
  bool repeats = false;
  while (is_prefix(byte_at(at))) {
    repeats = repeats || byte_at(at) == 0xf2 || byte_at(at) == 0xf3;
    ++at;
  }
  if ((byte_at(at) & 0xf0) == 0x40) ++at;  // REX
  if (at >= code.size()) return {};
  const uint8_t opcode = byte_at(at);
  const auto length = [&](size_t behind_opcode) {
    return static_cast<uint8_t>(at + 1 + behind_opcode);
  };
  switch (opcode) {
    case 0xe8:
      return {InstructionKind::Call, length(4)};
    case 0xff:
      if (((byte_at(at + 1) >> 3) & 7) != 2) return {InstructionKind::Other};
      return {InstructionKind::Call, length(operand_length(byte_at(at + 1), byte_at(at + 2)))};
    case 0xc2:
    case 0xc3:
      return {InstructionKind::Return};
    case 0xcc:
      return {InstructionKind::Breakpoint};
    case 0x0f:
      return {byte_at(at + 1) == 0x05 ? InstructionKind::Syscall : InstructionKind::Other};
    default:
      return {repeats && is_string_instruction(opcode) ? InstructionKind::Repeat
                                                       : InstructionKind::Other};
  }
}

}  // namespace sentry_prof::judge
