// As much of an x86-64 instruction as a shadow stack needs to know.
// Source: Intel SDM, volume 2, chapter 2 (prefixes, ModR/M, SIB).
#pragma once

#include "base/byte_reader.h"

#include <cstdint>

namespace sentry_prof::judge {

enum class InstructionKind : uint8_t {
  Unknown,  // not looked at, or not readable
  Other,
  Call,
  Return,
  Syscall,
  Repeat,  // a string instruction with a rep prefix: one stop for each round
  Breakpoint,
};

struct Instruction {
  InstructionKind kind = InstructionKind::Unknown;
  uint8_t length = 0;  // of a call; else 0
};

// `code` may be cut off: what cannot be told is Unknown.
Instruction instruction_at(Bytes code);

}  // namespace sentry_prof::judge
