// Code as objdump reads it: bytes and text of each instruction. For tests of the decoder.
#pragma once

#include "unwind/x86_instruction.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::testing {

struct DisassembledInstruction {
  uint64_t address = 0;
  std::vector<std::byte> bytes;
  std::string text;  // prefixes, mnemonic and operands in AT&T's syntax; no comment, no symbol
};

// A line of `objdump -d -w --insn-width=15`; none if it is no instruction, or a bad one. fwait is
// left out where it is shown together with the next.
std::optional<DisassembledInstruction> parse_disassembly_line(std::string_view line);

using InstructionVisitor = std::function<void(const DisassembledInstruction&)>;

// All code of `file`; false if objdump fails.
bool disassemble(const std::string& file, const InstructionVisitor& visit);

// What the text says that the instruction does; its size is the number of its bytes.
unwind::X86Instruction instruction_as_disassembled(const DisassembledInstruction& instruction);

}  // namespace sentry_prof::testing
