// Writes a BPF program, instruction by instruction. Pure.
// Source: Documentation/bpf/standardization/instruction-set.rst, include/uapi/linux/bpf.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <linux/bpf.h>

namespace sentry_prof::sampling {

// R0 is what a call returns, R1 to R5 its arguments, which it overwrites; R6 to R9 it preserves;
// Frame points behind 512 bytes of stack.
enum class BpfRegister : uint8_t { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, Frame };

class BpfAssembler {
 public:
  using Register = BpfRegister;
  // A jump whose target is told later.
  enum class Jump : size_t {};

  void move(Register to, Register from) { emit(BPF_ALU64 | BPF_MOV | BPF_X, to, from); }
  void move(Register to, int32_t value) { emit(BPF_ALU64 | BPF_MOV | BPF_K, to, {}, 0, value); }
  void add(Register to, Register from) { emit(BPF_ALU64 | BPF_ADD | BPF_X, to, from); }
  void add(Register to, int32_t value) { emit(BPF_ALU64 | BPF_ADD | BPF_K, to, {}, 0, value); }
  void subtract(Register to, Register from) { emit(BPF_ALU64 | BPF_SUB | BPF_X, to, from); }
  void bit_and(Register to, int32_t value) { emit(BPF_ALU64 | BPF_AND | BPF_K, to, {}, 0, value); }
  void bit_or(Register to, Register from) { emit(BPF_ALU64 | BPF_OR | BPF_X, to, from); }
  void shift_left(Register to, int32_t bits) { emit(BPF_ALU64 | BPF_LSH | BPF_K, to, {}, 0, bits); }
  void shift_right(Register to, int32_t bits) {
    emit(BPF_ALU64 | BPF_RSH | BPF_K, to, {}, 0, bits);
  }
  // 8 bytes, but for store_u32().
  void load(Register to, Register base, int16_t offset) {
    emit(BPF_LDX | BPF_MEM | BPF_DW, to, base, offset);
  }
  void store(Register base, int16_t offset, Register from) {
    emit(BPF_STX | BPF_MEM | BPF_DW, base, from, offset);
  }
  void store_u32(Register base, int16_t offset, Register from) {
    emit(BPF_STX | BPF_MEM | BPF_W, base, from, offset);
  }
  void load_map(Register to, int map_fd) {
    emit(BPF_LD | BPF_DW | BPF_IMM, to, static_cast<Register>(BPF_PSEUDO_MAP_FD), 0, map_fd);
    emit(0, {}, {});
  }
  void call(int32_t helper) { emit(BPF_JMP | BPF_CALL, {}, {}, 0, helper); }
  void exit() { emit(BPF_JMP | BPF_EXIT, {}, {}); }

  [[nodiscard]] Jump jump() { return emit_jump(BPF_JMP | BPF_JA, {}, {}); }
  [[nodiscard]] Jump jump_if_zero(Register value) {
    return emit_jump(BPF_JMP | BPF_JEQ | BPF_K, value, {});
  }
  [[nodiscard]] Jump jump_if_not_zero(Register value) {
    return emit_jump(BPF_JMP | BPF_JNE | BPF_K, value, {});
  }
  [[nodiscard]] Jump jump_if_below(Register value, Register bound) {
    return emit_jump(BPF_JMP | BPF_JLT | BPF_X, value, bound);
  }
  [[nodiscard]] Jump jump_if_not_below(Register value, Register bound) {
    return emit_jump(BPF_JMP | BPF_JGE | BPF_X, value, bound);
  }
  // The jump leads to the next instruction.
  void lands(Jump jump) {
    const auto from = static_cast<size_t>(jump);
    instructions_[from].off = static_cast<int16_t>(instructions_.size() - from - 1);
  }

  std::vector<bpf_insn> take() { return std::move(instructions_); }

 private:
  void emit(uint8_t code, Register to, Register from, int16_t offset = 0, int32_t value = 0) {
    bpf_insn instruction{};
    instruction.code = code;
    instruction.dst_reg = static_cast<uint8_t>(to) & 0xf;
    instruction.src_reg = static_cast<uint8_t>(from) & 0xf;
    instruction.off = offset;
    instruction.imm = value;
    instructions_.push_back(instruction);
  }
  Jump emit_jump(uint8_t code, Register value, Register bound) {
    emit(code, value, bound);
    return static_cast<Jump>(instructions_.size() - 1);
  }

  std::vector<bpf_insn> instructions_;
};

}  // namespace sentry_prof::sampling
