#include "disassembly.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace sentry_prof::testing {
namespace {

using unwind::X86Effect;
using unwind::X86Instruction;

constexpr std::string_view kBlanks = " \t\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The text up to the first of `separators`, which is cut off `text` with it.
std::string_view take_until(std::string_view& text, std::string_view separators) {
  const size_t end = std::min(text.find_first_of(separators), text.size());
  const std::string_view result = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return result;
}

std::optional<uint64_t> parse_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 0x10 or -0x10; nothing is 0, as in (%rsp).
std::optional<int64_t> parse_displacement(std::string_view text) {
  if (text.empty()) return 0;
  const bool is_negative = text.starts_with('-');
  const auto value = parse_hex(text.substr(is_negative ? 1 : 0));
  if (!value) return std::nullopt;
  return static_cast<int64_t>(is_negative ? -*value : *value);
}

template <size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_prefix(std::string_view word) {
  constexpr std::array<std::string_view, 17> kPrefixes{
      "rep", "repz", "repnz", "bnd", "notrack", "data16",   "addr32",   "lock", "cs",
      "ds",  "es",   "fs",    "gs",  "ss",      "xacquire", "xrelease", "rex"};
  return is_one_of(word, kPrefixes) || word.starts_with("rex.");
}

// The mnemonic and the operands, the one that is written to last.
struct Parts {
  std::string_view mnemonic;
  std::vector<std::string_view> operands;

  std::string_view operand(size_t i) const {
    return i < operands.size() ? operands[i] : std::string_view();
  }
  std::string_view last() const { return operands.empty() ? std::string_view() : operands.back(); }
};

std::vector<std::string_view> split_operands(std::string_view text) {
  std::vector<std::string_view> result;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (i > begin) result.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return result;
}

Parts split(std::string_view text) {
  Parts parts;
  do {
    text = trimmed(text);
    parts.mnemonic = take_until(text, kBlanks);
  } while (is_prefix(parts.mnemonic));
  parts.mnemonic = parts.mnemonic.substr(0, parts.mnemonic.find(','));  // a branch's hint
  parts.operands = split_operands(text);
  return parts;
}

bool is_sp(std::string_view name) {
  return is_one_of(name, std::array<std::string_view, 4>{"%rsp", "%esp", "%sp", "%spl"});
}
bool is_fp(std::string_view name) {
  return is_one_of(name, std::array<std::string_view, 4>{"%rbp", "%ebp", "%bp", "%bpl"});
}

// Neither what objdump does not know, nor prefixes of a REX that something else stands behind.
bool is_instruction(std::string_view text) {
  if (text.find("(bad)") != std::string_view::npos) return false;
  const std::string_view mnemonic = split(text).mnemonic;
  return !mnemonic.empty() && !mnemonic.starts_with('.');
}

X86Instruction with(X86Effect effect, int64_t operand = 0) {
  return {.effect = effect, .operand = static_cast<int32_t>(operand)};
}

// %rbx and %r10 to %r15, by any of their names; else none.
unwind::X86Registers told_register(std::string_view name) {
  if (is_one_of(name, std::array<std::string_view, 5>{"%rbx", "%ebx", "%bx", "%bl", "%bh"})) {
    return 1u << 3;
  }
  const bool is_high = name.size() >= 4 && name.starts_with("%r1") && name[3] >= '0' &&
                       name[3] <= '5' && (name.size() == 4 || name.find_first_of("dwb") == 4);
  return is_high ? static_cast<unwind::X86Registers>(1u << (10 + name[3] - '0')) : 0;
}

X86Instruction write_to(std::string_view name) {
  if (is_sp(name)) return with(X86Effect::OverwritesSp);
  X86Instruction result = with(is_fp(name) ? X86Effect::OverwritesFp : X86Effect::None);
  result.writes = told_register(name);
  return result;
}

unwind::X86Registers followed_register(std::string_view name) {
  return told_register(name) & unwind::kX86FollowedRegisters;
}

X86Instruction sp_from(unwind::X86Registers source, int64_t displacement) {
  X86Instruction result = with(X86Effect::SpFromRegister, displacement);
  result.source = static_cast<uint8_t>(std::countr_zero(source));
  return result;
}

// Those whose last operand is a register that they only read.
bool only_reads(const Parts& parts) {
  constexpr std::array<std::string_view, 16> kReading{
      "bt",  "call", "lcall", "verr", "verw", "lldt", "ltr",  "lmsw",
      "mul", "div",  "idiv",  "out",  "nop",  "nopw", "nopl", "invlpg"};
  const std::string_view mnemonic = parts.mnemonic;
  const bool is_compare = mnemonic.starts_with("cmp") && !mnemonic.starts_with("cmpxchg");
  return is_compare || mnemonic.starts_with("test") || is_one_of(mnemonic, kReading) ||
         (mnemonic == "imul" && parts.operands.size() == 1);
}

X86Instruction effect_of_write(const Parts& parts) {
  if (only_reads(parts)) return {};
  const bool has_two =
      is_one_of(parts.mnemonic, std::array<std::string_view, 3>{"xchg", "xadd", "mulx"});
  if (has_two && parts.operands.size() >= 2) {
    const X86Instruction first = write_to(parts.operands[parts.operands.size() - 2]);
    const X86Instruction last = write_to(parts.last());
    X86Instruction result = first.effect != X86Effect::None ? first : last;
    result.writes = first.writes | last.writes;
    return result;
  }
  if (parts.mnemonic == "cpuid") return write_to("%ebx");
  return write_to(parts.last());
}

bool moves_16_bits(const Parts& parts) {
  const std::string_view name = parts.last();
  const bool is_segment = name == "%fs" || name == "%gs";
  const bool is_short = name.starts_with('%') && (name.size() == 3 || name.ends_with('w'));
  return parts.mnemonic.ends_with('w') ||
         (is_short && !is_segment && name != "%r8" && name != "%r9");
}

X86Instruction effect_of_push_or_pop(const Parts& parts) {
  const bool is_push = parts.mnemonic.starts_with("push");
  const std::string_view name = parts.last();
  X86Instruction result = is_push ? X86Instruction{} : write_to(name);
  result.effect = is_push ? X86Effect::Push : X86Effect::Pop;
  if (name == "%rbp") result.effect = is_push ? X86Effect::PushFp : X86Effect::PopFp;
  if (!is_push && name == "%rsp") result.effect = X86Effect::SpFromStack;
  if (name == "%r10") result.effect = is_push ? X86Effect::PushR10 : X86Effect::PopR10;
  if (moves_16_bits(parts)) result.effect = X86Effect::OverwritesSp;
  return result;
}

// x(%rsp) or x(%rbp), as `base` says.
std::optional<int64_t> displacement_from(std::string_view operand, std::string_view base) {
  if (!operand.ends_with(base)) return std::nullopt;
  return parse_displacement(operand.substr(0, operand.size() - base.size()));
}

X86Instruction effect_of_lea(const Parts& parts) {
  const std::string_view from = parts.operand(0), to = parts.operand(1);
  const auto from_sp = displacement_from(from, "(%rsp)");
  const auto from_fp = displacement_from(from, "(%rbp)");
  if (to == "%rsp" && from_sp) return with(X86Effect::AddToSp, *from_sp);
  if (to == "%rsp" && from_fp) return with(X86Effect::SpFromFp, *from_fp);
  if (to == "%rbp" && from_sp) return with(X86Effect::FpFromSp, *from_sp);
  if (to == "%rbp" && from_fp == 0) return {};
  const size_t base = from.find("(%r");
  if (to == "%rsp" && base != from.npos && from.ends_with(')')) {
    const auto displacement = parse_displacement(from.substr(0, base));
    const auto source = followed_register(from.substr(base + 1, from.size() - base - 2));
    if (displacement && source != 0) return sp_from(source, *displacement);
  }
  return write_to(to);
}

X86Instruction effect_of_move(const Parts& parts) {
  const std::string_view from = parts.operand(0), to = parts.operand(1);
  if (from == "%rbp" && to == "%rsp") return with(X86Effect::SpFromFp);
  if (from == "%rsp" && to == "%rbp") return with(X86Effect::FpFromSp);
  if (to == "%rsp" && followed_register(from) != 0) return sp_from(followed_register(from), 0);
  const auto slot = displacement_from(from == "%rbp" ? to : from, "(%rsp)");
  if (from == "%rbp" && slot) return with(X86Effect::SavesFp, *slot);
  if (to == "%rbp" && slot) return with(X86Effect::RestoresFp, *slot);
  if (to == "%rsp" && slot) return with(X86Effect::SpFromStack, *slot);
  if (const auto word = displacement_from(from, "(%rbp)"); to == "%r10" && word) {
    X86Instruction result = write_to(to);
    result.effect = X86Effect::LoadsR10;
    result.operand = static_cast<int32_t>(*word);
    return result;
  }
  if (to == "%rbp" && displacement_from(from, "(%rbp)") == 0) return with(X86Effect::FollowsFp);
  return effect_of_write(parts);
}

X86Instruction effect_of_add(const Parts& parts) {
  const std::string_view from = parts.operand(0);
  const auto value = from.starts_with('$') ? parse_hex(from.substr(1)) : std::nullopt;
  if (parts.operand(1) != "%rsp" || !value) return write_to(parts.last());
  const auto bytes = static_cast<int64_t>(*value);
  return with(X86Effect::AddToSp, parts.mnemonic.starts_with("add") ? bytes : -bytes);
}

X86Instruction effect_of_return(const Parts& parts) {
  const std::string_view bytes = parts.operand(0);
  if (!bytes.starts_with('$')) return with(X86Effect::Return);
  return with(X86Effect::Return, static_cast<int64_t>(parse_hex(bytes.substr(1)).value_or(0)));
}

X86Instruction effect_of_jump(const DisassembledInstruction& instruction, const Parts& parts) {
  const std::string_view target = parts.operand(0);
  if (target.starts_with('*')) {
    if (target.ends_with("(%rip)")) return with(X86Effect::JumpByPointer);
    const bool is_by_table = target.find(',') != target.npos;
    return with(is_by_table ? X86Effect::Stops : X86Effect::JumpElsewhere);
  }
  const uint64_t end = instruction.address + instruction.bytes.size();
  const auto distance = static_cast<int64_t>(parse_hex(target).value_or(0) - end);
  return with(parts.mnemonic.starts_with("jmp") ? X86Effect::Jump : X86Effect::Branch, distance);
}

X86Instruction effect_of(const DisassembledInstruction& instruction, const Parts& parts) {
  constexpr std::array<std::string_view, 5> kTraps{"hlt", "ud0", "ud1", "ud2", "int3"};
  constexpr std::array<std::string_view, 5> kStops{"lret", "iret", "iretq", "ljmp", "iretw"};
  const std::string_view mnemonic = parts.mnemonic;
  const auto is = [&](std::string_view name) {  // with or without the size that may be appended
    return mnemonic == name || (mnemonic.size() == name.size() + 1 && mnemonic.starts_with(name) &&
                                (mnemonic.back() == 'q' || mnemonic.back() == 'w'));
  };
  if (is("push") || is("pop") || is("pushf") || is("popf")) return effect_of_push_or_pop(parts);
  if (is("leave")) return with(X86Effect::Leave);
  if (is("enter")) return with(X86Effect::Stops);
  if (is("ret")) return effect_of_return(parts);
  if (is("call") || mnemonic == "lcall") {
    return {.writes = 1u << unwind::kX86R10 | 1u << unwind::kX86R11};  // preserves the others
  }
  constexpr std::array<std::string_view, 3> kKernelCalls{"syscall", "sysenter", "int"};
  if (is_one_of(mnemonic, kKernelCalls)) return with(X86Effect::CallsKernel);
  if (is_one_of(mnemonic, kTraps)) return with(X86Effect::Traps);
  if (is_one_of(mnemonic, kStops) || is("ljmp") || is("lret")) return with(X86Effect::Stops);
  if (mnemonic.starts_with('j') || mnemonic.starts_with("loop")) {
    return effect_of_jump(instruction, parts);
  }
  if (is("lea")) return effect_of_lea(parts);
  if (is("add") || is("sub")) return effect_of_add(parts);
  if (is("mov")) return effect_of_move(parts);
  return effect_of_write(parts);
}

}  // namespace

// "  c5004:\t48 8b 05 6d cb 3b 00 \tmov    0x3bcb6d(%rip),%rax        # 481b78 <symbol>"
std::optional<DisassembledInstruction> parse_disassembly_line(std::string_view line) {
  std::string_view head = take_until(line, "\t");
  if (!head.ends_with(':')) return std::nullopt;
  head.remove_suffix(1);
  const auto address = parse_hex(trimmed(head));
  if (!address) return std::nullopt;
  DisassembledInstruction result;
  result.address = *address;
  std::string_view bytes = trimmed(take_until(line, "\t"));
  while (!bytes.empty()) {
    const auto byte = parse_hex(take_until(bytes, " "));
    if (!byte || *byte > 0xff) return std::nullopt;
    result.bytes.push_back(static_cast<std::byte>(*byte));
  }
  result.text = trimmed(line.substr(0, line.find_first_of("#<")));
  if (result.bytes.empty() || !is_instruction(result.text)) return std::nullopt;
  // fwait is an instruction, which objdump shows as one with the x87 instruction behind it.
  if (result.bytes.size() > 1 && result.bytes[0] == std::byte{0x9b}) {
    result.bytes.erase(result.bytes.begin());
    ++result.address;
  }
  return result;
}

bool disassemble(const std::string& file, const InstructionVisitor& visit) {
  const std::string command = "objdump -d -w -M intel64 --insn-width=15 '" + file + "'";
  FILE* const output = ::popen(command.c_str(), "r");
  if (output == nullptr) return false;
  char* line = nullptr;
  size_t capacity = 0;
  for (ssize_t size; (size = ::getline(&line, &capacity, output)) > 0;) {
    const auto parsed = parse_disassembly_line({line, static_cast<size_t>(size)});
    if (parsed) visit(*parsed);
  }
  std::free(line);
  return ::pclose(output) == 0;
}

X86Instruction instruction_as_disassembled(const DisassembledInstruction& instruction) {
  X86Instruction result = effect_of(instruction, split(instruction.text));
  result.size_bytes = static_cast<uint8_t>(instruction.bytes.size());
  return result;
}

}  // namespace sentry_prof::testing
