// The address that code has loaded into %r11, to jump there: how JIT compilers go farther than the
// 32 bits of a jump reach (PyPy).
// Source: Intel SDM, volume 2, "MOV" (REX.W + B8+rd io), "LEA", "JMP" (FF /4), chapter 2 (ModR/M).
#pragma once

#include "base/byte_reader.h"
#include "unwind/x86_instruction.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

class ConstantRegister {
 public:
  // `instruction` is the next one, and whole; `effect` what decode_x86() says of it.
  void apply(Bytes instruction, const X86Instruction& effect);
  // Where the instruction, the next one, jumps to by the register.
  std::optional<uint64_t> target_of_jump(Bytes instruction) const;

 private:
  std::optional<uint64_t> value_;
};

}  // namespace sentry_prof::unwind
