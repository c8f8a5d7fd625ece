// Checks of single instructions for the tests of the decoder.
#pragma once

#include "support/catch2.h"
#include "unwind/x86_instruction.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

namespace sentry_prof::test {

inline std::vector<std::byte> instruction_bytes(std::initializer_list<int> bytes) {
  std::vector<std::byte> code;
  for (const int byte : bytes) code.push_back(static_cast<std::byte>(byte));
  return code;
}

inline std::string instruction_hex(Bytes code) {
  std::string text;
  for (const std::byte byte : code) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x ", std::to_integer<unsigned>(byte));
    text += digits;
  }
  return text;
}

// One instruction: so, whatever stands behind it, and nothing if any of its bytes is missing.
inline void check_effect(std::initializer_list<int> bytes, unwind::X86Effect effect,
                         int32_t operand = 0) {
  std::vector<std::byte> code = instruction_bytes(bytes);
  const size_t size_bytes = code.size();
  INFO(instruction_hex(code));
  for (size_t size = 0; size < size_bytes; ++size) {
    INFO("cut to " << size);
    CHECK_FALSE(unwind::decode_x86(Bytes(code).first(size)).has_value());
  }
  for (const int next : {0x00, 0x48, 0xff}) {
    code.resize(size_bytes);
    code.resize(size_bytes + unwind::kLongestX86Instruction_bytes, static_cast<std::byte>(next));
    const auto instruction = unwind::decode_x86(code);
    REQUIRE(instruction.has_value());
    CHECK(int{instruction->size_bytes} == static_cast<int>(size_bytes));
    CHECK(static_cast<int>(instruction->effect) == static_cast<int>(effect));
    CHECK(instruction->operand == operand);
  }
}

inline void check_has_no_effect(std::initializer_list<int> bytes) {
  check_effect(bytes, unwind::X86Effect::None);
}

}  // namespace sentry_prof::test
