#include "unwind/arm_code.h"

#include "base/byte_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace sentry_prof::unwind {
namespace {

constexpr size_t kInstruction_bytes = 4;
// What one may restore behind x29 and x30: x19 to x28 and d8 to d15 by pairs, the room, the check
// of a signature and the return.
constexpr size_t kMaxEpilogue_instructions = 12;
constexpr uint64_t kMaxLeaf_bytes = 4096;
constexpr unsigned kFp = 29, kLr = 30, kSp = 31;

unsigned field(uint32_t instruction, unsigned low_bit) { return instruction >> low_bit & 31; }

bool is_return(uint32_t instruction) {
  constexpr uint32_t kRet = 0xd65f03c0, kRetaa = 0xd65f0bff, kRetab = 0xd65f0fff;
  return instruction == kRet || instruction == kRetaa || instruction == kRetab;
}

bool is_signature_check(uint32_t instruction) {
  constexpr uint32_t kAutiasp = 0xd50323bf, kAutibsp = 0xd50323ff;
  return instruction == kAutiasp || instruction == kAutibsp;
}

// How far an instruction of an epilogue moves the stack pointer; none if it is another one, or
// restores x29 or x30.
std::optional<int64_t> moved_bytes(uint32_t instruction) {
  if (is_signature_check(instruction)) return 0;
  if ((instruction & 0xff8003ff) == 0x910003ff) {  // add sp, sp, #imm12 {, lsl #12}
    const int64_t amount = instruction >> 10 & 0xfff;
    return (instruction >> 22 & 1) != 0 ? amount << 12 : amount;
  }
  if (field(instruction, 5) != kSp) return std::nullopt;
  const auto is_caller_record = [](unsigned number) { return number == kFp || number == kLr; };
  const bool is_pair_of_x = (instruction & 0xfe400000) == 0xa8400000;  // ldp x, x
  const bool is_pair_of_d = (instruction & 0xfe400000) == 0x6c400000;  // ldp d, d
  const unsigned first = field(instruction, 0), second = field(instruction, 10);
  if (is_pair_of_x && (is_caller_record(first) || is_caller_record(second))) return std::nullopt;
  if (is_pair_of_x || is_pair_of_d) {
    const unsigned mode = instruction >> 23 & 3;
    if (mode == 2) return 0;  // [sp, #imm7]
    const int64_t words = static_cast<int32_t>(instruction << 10) >> 25;
    return mode == 1 ? std::optional(8 * words) : std::nullopt;  // [sp], #imm7
  }
  if (is_caller_record(first)) return std::nullopt;
  const bool is_at_offset = (instruction & 0xffc00000) == 0xf9400000 ||  // ldr x, [sp, #imm12]
                            (instruction & 0xffc00000) == 0xfd400000;    // ldr d, [sp, #imm12]
  if (is_at_offset) return 0;
  const bool is_post_indexed = (instruction & 0xffe00c00) == 0xf8400400 ||  // ldr x, [sp], #imm9
                               (instruction & 0xffe00c00) == 0xfc400400;    // ldr d, [sp], #imm9
  if (is_post_indexed) return static_cast<int32_t>(instruction << 11) >> 23;
  return std::nullopt;
}

// stp and str of x30, whatever the base register and the form of the address.
bool stores_link_register(uint32_t instruction) {
  const bool is_pair = (instruction & 0xfe400000) == 0xa8000000;  // stnp, stp
  if (is_pair) return field(instruction, 0) == kLr || field(instruction, 10) == kLr;
  const bool is_at_offset = (instruction & 0xffc00000) == 0xf9000000;
  const bool is_of_other_form = (instruction & 0xffc00000) == 0xf8000000;
  return (is_at_offset || is_of_other_form) && field(instruction, 0) == kLr;
}

}  // namespace

CompactRule rule_of_epilogue(const CodeSource& code, LinkAddress pc, uint32_t& work) {
  std::array<std::byte, kInstruction_bytes> bytes;
  int64_t sum_bytes = 0;
  for (size_t i = 0; i < kMaxEpilogue_instructions; ++i) {
    work += kReadCodeWork;
    if (!code.read_code({pc.value + i * kInstruction_bytes}, bytes)) return {};
    const uint32_t instruction = ByteReader(bytes, std::endian::little).u32();
    if (is_return(instruction)) {
      const int64_t words = sum_bytes / 8;
      if (sum_bytes % 8 != 0 || words < 0 || words > INT16_MAX) return {};
      return {.kind = CompactKind::LinkFromSp, .cfa_words = static_cast<int16_t>(words)};
    }
    const std::optional<int64_t> moved = moved_bytes(instruction);
    if (!moved) return {};
    sum_bytes += *moved;
  }
  return {};
}

bool keeps_no_link_register(const CodeSource& code, LinkAddress begin, LinkAddress pc,
                            uint32_t& work) {
  std::array<std::byte, kMaxLeaf_bytes> bytes;
  const uint64_t size = pc.value - begin.value;
  const bool is_readable = pc.value > begin.value && size <= bytes.size() && size % 4 == 0;
  if (!is_readable) return false;
  const auto range = std::span(bytes).first(static_cast<size_t>(size));
  work += kReadCodeWork + static_cast<uint32_t>(size / kInstruction_bytes);
  if (!code.read_code(begin, range)) return false;
  ByteReader reader(range, std::endian::little);
  while (!reader.at_end()) {
    if (stores_link_register(reader.u32())) return false;
  }
  return true;
}

}  // namespace sentry_prof::unwind
