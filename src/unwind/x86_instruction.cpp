#include "unwind/x86_instruction.h"

#include "unwind/byte_set.h"

namespace sentry_prof::unwind {
namespace {

constexpr unsigned kBx = 3, kSp = 4, kFp = 5;  // register numbers of instructions

// Of those that take general registers: which of the two operands of ModR/M they write to.
constexpr ByteSet kWritesRm{{0x00, 0x01}, {0x08, 0x09}, {0x10, 0x11}, {0x18, 0x19},
                            {0x20, 0x21}, {0x28, 0x29}, {0x30, 0x31}, {0x86, 0x89},
                            {0x8c, 0x8c}, {0xc0, 0xc1}, {0xc6, 0xc7}, {0xd0, 0xd3}};
constexpr ByteSet kWritesReg{{0x02, 0x03}, {0x0a, 0x0b}, {0x12, 0x13}, {0x1a, 0x1b}, {0x22, 0x23},
                             {0x2a, 0x2b}, {0x32, 0x33}, {0x63, 0x63}, {0x69, 0x69}, {0x6b, 0x6b},
                             {0x86, 0x87}, {0x8a, 0x8b}, {0x8d, 0x8d}};
constexpr ByteSet kWritesRmOf0F{{0x90, 0x9f}, {0xa4, 0xa5}, {0xab, 0xad}, {0xb0, 0xb1},
                                {0xb3, 0xb3}, {0xbb, 0xbb}, {0xc0, 0xc1}, {0xc7, 0xc7}};
constexpr ByteSet kWritesRegOf0F{{0x02, 0x03}, {0x40, 0x4f}, {0x50, 0x50},
                                 {0xaf, 0xaf}, {0xb6, 0xb8}, {0xbc, 0xbf},
                                 {0xc0, 0xc1}, {0xc5, 0xc5}, {0xd7, 0xd7}};
// Those of a byte: without REX, registers 4 and 5 are %ah and %ch to them.
constexpr ByteSet kWritesByte{{0x00, 0x00}, {0x02, 0x02}, {0x08, 0x08}, {0x0a, 0x0a}, {0x10, 0x10},
                              {0x12, 0x12}, {0x18, 0x18}, {0x1a, 0x1a}, {0x20, 0x20}, {0x22, 0x22},
                              {0x28, 0x28}, {0x2a, 0x2a}, {0x30, 0x30}, {0x32, 0x32}, {0x80, 0x80},
                              {0x86, 0x86}, {0x88, 0x88}, {0x8a, 0x8a}, {0xb0, 0xb7}, {0xc0, 0xc0},
                              {0xc6, 0xc6}, {0xd0, 0xd0}, {0xd2, 0xd2}, {0xf6, 0xf6}, {0xfe, 0xfe}};
constexpr ByteSet kWritesByteOf0F{{0x90, 0x9f}, {0xb0, 0xb0}, {0xc0, 0xc0}};

class Effects {
 public:
  explicit Effects(const X86Encoding& code) : code_(code) {}

  X86Instruction effect() const {
    switch (code_.map) {
      case X86Map::OneByte:
        return effect_of_one_byte();
      case X86Map::Escape0F:
        return code_.is_vector ? effect_of_vector() : effect_of_0f();
      case X86Map::Escape0F38:
        return effect_of_0f38();
      case X86Map::Escape0F3A:
        return effect_of_0f3a();
      default:
        return {};
    }
  }

 private:
  X86Instruction effect_of_0f() const {
    if (code_.opcode == 0x0b || code_.opcode == 0xb9 || code_.opcode == 0xff) {  // ud2, ud1, ud0
      return with(X86Effect::Traps);
    }
    if ((code_.opcode & 0xf0) == 0x80) return with(X86Effect::Branch, code_.immediate);
    if (code_.opcode >= 0xc8 && code_.opcode <= 0xcf) return write_to(code_.register_in_opcode());
    switch (code_.opcode) {  // of %fs and %gs
      case 0xa0:
      case 0xa8:
        return with(X86Effect::Push);
      case 0xa1:
      case 0xa9:
        return with(X86Effect::Pop);
      case 0x05:
      case 0x34:
        return with(X86Effect::CallsKernel);
      case 0x1e:  // rdssp
        return has_f3_and_register(1, 1) ? write_to(code_.rm) : X86Instruction{};
      case 0xae:  // rdfsbase, rdgsbase; wrfsbase and wrgsbase read
        return has_f3_and_register(0, 1) ? write_to(code_.rm) : X86Instruction{};
      case 0xa2:  // cpuid
        return write_told(kBx);
      case 0xba:  // bt, which only reads, bts, btr, btc
        return code_.is_register() && (code_.reg & 7) > 4 ? write_to(code_.rm) : X86Instruction{};
      case 0x2c:
      case 0x2d:
      case 0x7e:
        return effect_of_vector();
      default:
        return writes(kWritesRmOf0F, kWritesRegOf0F);
    }
  }

  // With them it is another instruction, told by the middle bits of ModR/M, `first` to `last`.
  bool has_f3_and_register(unsigned first, unsigned last) const {
    return code_.is_scalar && code_.is_register() && (code_.reg & 7) >= first &&
           (code_.reg & 7) <= last;
  }

  // Of a vector register's content to a general register.
  X86Instruction effect_of_vector() const {
    switch (code_.opcode) {
      case 0x2c:
      case 0x2d:
      case 0x78:
      case 0x79:
        return code_.is_scalar ? write_to(code_.reg) : X86Instruction{};
      case 0x50:
      case 0x93:
      case 0xc5:
      case 0xd7:
        return write_to(code_.reg);
      case 0x7e:
        return code_.is_scalar || !code_.is_register() ? X86Instruction{} : write_to(code_.rm);
      default:
        return {};
    }
  }

  X86Instruction effect_of_0f38() const {
    const uint8_t byte = code_.opcode;
    if (!code_.is_vector) {  // movbe, crc32, adcx, adox
      const bool is_load = byte == 0xf0 || (byte == 0xf1 && code_.is_scalar) ||
                           (byte == 0xf6 && (code_.is_scalar || code_.has_16_bit_operand));
      return is_load ? write_to(code_.reg) : X86Instruction{};
    }
    const X86Instruction third = write_to(code_.vector_reg);
    if (byte == 0xf3) return third;                             // blsr
    if (byte == 0xf6) return both(third, write_to(code_.reg));  // mulx
    return byte == 0xf2 || byte == 0xf5 || byte == 0xf7 ? write_to(code_.reg) : X86Instruction{};
  }

  X86Instruction effect_of_0f3a() const {
    if (code_.is_vector && code_.opcode == 0xf0) return write_to(code_.reg);  // rorx
    const bool is_extract = code_.opcode >= 0x14 && code_.opcode <= 0x17;
    return is_extract && code_.is_register() ? write_to(code_.rm) : X86Instruction{};
  }

  X86Instruction effect_of_one_byte() const {
    const uint8_t byte = code_.opcode;
    if (byte >= 0x50 && byte <= 0x57) return push(code_.register_in_opcode());
    if (byte >= 0x58 && byte <= 0x5f) return pop(code_.register_in_opcode());
    if ((byte >= 0x70 && byte <= 0x7f) || (byte >= 0xe0 && byte <= 0xe3)) {
      return with(X86Effect::Branch, code_.immediate);
    }
    if (byte >= 0xb0 && byte <= 0xbf) return write_to(code_.register_in_opcode());
    if (byte >= 0x91 && byte <= 0x97) return write_to(code_.register_in_opcode());
    switch (byte) {
      case 0x68:
      case 0x6a:
      case 0x9c:
        return push();
      case 0xe8:
        return call();
      case 0x9d:
        return pop(0);
      case 0x8f:
        return code_.is_register() ? pop(code_.rm) : pop(0);
      case 0xc2:
      case 0xc3:
        return with(X86Effect::Return, code_.immediate);
      case 0xc9:
        return with(X86Effect::Leave);
      case 0xe9:
      case 0xeb:
        return with(X86Effect::Jump, code_.immediate);
      case 0xcc:
      case 0xf4:
        return with(X86Effect::Traps);
      case 0xcd:
        return with(X86Effect::CallsKernel);
      case 0xc8:  // enter, which compilers do not make
      case 0xca:
      case 0xcb:
      case 0xcf:
        return with(X86Effect::Stops);
      case 0xff:
        return effect_of_group_5();
      case 0x80:
      case 0x81:
      case 0x83:
        return effect_of_arithmetic();
      case 0x8d:
        return effect_of_lea();
      case 0x89:
        return code_.is_register() ? effect_of_move(code_.rm, code_.reg) : effect_of_store();
      case 0x8b:
        return code_.is_register() ? effect_of_move(code_.reg, code_.rm) : effect_of_load();
      case 0xfe:
        return code_.is_register() ? write_to(code_.rm) : X86Instruction{};
      case 0xf6:
      case 0xf7:
        return code_.is_register() && ((code_.reg & 7) == 2 || (code_.reg & 7) == 3)
                   ? write_to(code_.rm)
                   : X86Instruction{};
      default:
        return writes(kWritesRm, kWritesReg);
    }
  }

  X86Instruction effect_of_group_5() const {
    switch (code_.reg & 7) {
      case 0:
      case 1:
        return code_.is_register() ? write_to(code_.rm) : X86Instruction{};
      case 2:
      case 3:
        return call();
      case 4: {
        const bool is_through_pointer = code_.mod == 0 && (code_.rm & 7) == 5;
        if (is_through_pointer) return with(X86Effect::JumpByPointer);
        const bool is_by_table = !code_.is_register() && !code_.base;
        return with(is_by_table ? X86Effect::Stops : X86Effect::JumpElsewhere);
      }
      case 5:
        return with(X86Effect::Stops);
      case 6:
        return code_.is_register() ? push(code_.rm) : push();
      default:
        return {};
    }
  }

  // add, or, adc, sbb, and, sub, xor, cmp of an immediate.
  X86Instruction effect_of_arithmetic() const {
    if (!code_.is_register() || (code_.reg & 7) == 7) return {};
    const bool is_add = (code_.reg & 7) == 0, is_sub = (code_.reg & 7) == 5;
    const bool is_whole = code_.rex_w && code_.immediate != INT32_MIN;
    if (code_.rm != kSp || !is_whole || !(is_add || is_sub)) return write_to(code_.rm);
    return with(X86Effect::AddToSp, is_add ? code_.immediate : -code_.immediate);
  }

  X86Instruction effect_of_lea() const {
    if (code_.is_register()) return {};  // no such instruction
    const std::optional<unsigned> base = code_.base;
    if (!code_.rex_w || !base) return write_to(code_.reg);
    if (code_.reg == kSp && base == kSp) return with(X86Effect::AddToSp, code_.displacement);
    if (code_.reg == kSp && base == kFp) return with(X86Effect::SpFromFp, code_.displacement);
    if (code_.reg == kSp && is_followed(*base)) {
      return sp_from_register(*base, code_.displacement);
    }
    if (code_.reg == kFp && base == kSp) return with(X86Effect::FpFromSp, code_.displacement);
    if (code_.reg == kFp && base == kFp && code_.displacement == 0) return {};  // Mono's padding
    return write_to(code_.reg);
  }

  X86Instruction effect_of_move(unsigned to, unsigned from) const {
    if (code_.rex_w && to == kSp && from == kFp) return with(X86Effect::SpFromFp);
    if (code_.rex_w && to == kFp && from == kSp) return with(X86Effect::FpFromSp);
    if (code_.rex_w && to == kSp && is_followed(from)) return sp_from_register(from, 0);
    return write_to(to);
  }

  X86Instruction effect_of_store() const {
    const bool is_fp_on_stack = code_.rex_w && code_.reg == kFp && code_.base == kSp;
    return is_fp_on_stack ? with(X86Effect::SavesFp, code_.displacement) : X86Instruction{};
  }

  X86Instruction effect_of_load() const {
    const bool is_sp_on_stack = code_.rex_w && code_.reg == kSp && code_.base == kSp;
    if (is_sp_on_stack) return with(X86Effect::SpFromStack, code_.displacement);
    if (code_.rex_w && code_.reg == kX86R10 && code_.base == kFp) return load_r10();
    if (code_.reg != kFp || !code_.rex_w) return write_to(code_.reg);
    if (code_.base == kSp) return with(X86Effect::RestoresFp, code_.displacement);
    const bool is_record = code_.base == kFp && code_.displacement == 0;
    return with(is_record ? X86Effect::FollowsFp : X86Effect::OverwritesFp);
  }

  X86Instruction writes(const ByteSet& to_rm, const ByteSet& to_reg) const {
    const X86Instruction none;
    const X86Instruction reg = to_reg.has(code_.opcode) ? write_to(code_.reg) : none;
    const X86Instruction rm =
        to_rm.has(code_.opcode) && code_.is_register() ? write_to(code_.rm) : none;
    return both(reg, rm);  // xchg
  }

  // Of an instruction that writes two registers.
  static X86Instruction both(X86Instruction one, X86Instruction other) {
    X86Instruction result =
        one.effect == X86Effect::None || other.effect == X86Effect::OverwritesSp ? other : one;
    result.writes = one.writes | other.writes;
    return result;
  }

  X86Instruction write_to(unsigned number) const {
    if (!code_.has_rex && writes_byte()) return write_told(number & 3);  // %ah to %bh, too
    if (number == kSp) return with(X86Effect::OverwritesSp);
    return number == kFp ? with(X86Effect::OverwritesFp) : write_told(number);
  }

  static bool is_followed(unsigned number) { return (kX86FollowedRegisters >> number & 1) != 0; }

  static X86Instruction write_told(unsigned number) {
    X86Instruction result;
    if ((kX86ToldRegisters >> number & 1) != 0) {
      result.writes = static_cast<X86Registers>(1u << number);
    }
    return result;
  }

  // It preserves the others.
  static X86Instruction call() {
    return {.writes = static_cast<X86Registers>(1u << kX86R10 | 1u << kX86R11)};
  }

  X86Instruction load_r10() const {
    X86Instruction result = write_told(kX86R10);
    result.effect = X86Effect::LoadsR10;
    result.operand = code_.displacement;
    return result;
  }

  static X86Instruction sp_from_register(unsigned number, int32_t displacement) {
    X86Instruction result = with(X86Effect::SpFromRegister, displacement);
    result.source = static_cast<uint8_t>(number);
    return result;
  }

  bool writes_byte() const {
    if (code_.map == X86Map::OneByte) return kWritesByte.has(code_.opcode);
    return code_.map == X86Map::Escape0F && !code_.is_vector && kWritesByteOf0F.has(code_.opcode);
  }

  X86Instruction push(std::optional<unsigned> number = {}) const {
    if (code_.moves_16_bits()) return with(X86Effect::OverwritesSp);
    return with(number == kFp       ? X86Effect::PushFp
                : number == kX86R10 ? X86Effect::PushR10
                                    : X86Effect::Push);
  }

  X86Instruction pop(unsigned number) const {
    X86Instruction result = write_told(number);
    result.effect = number == kFp       ? X86Effect::PopFp
                    : number == kSp     ? X86Effect::SpFromStack
                    : number == kX86R10 ? X86Effect::PopR10
                                        : X86Effect::Pop;
    if (code_.moves_16_bits()) result.effect = X86Effect::OverwritesSp;
    return result;
  }

  static X86Instruction with(X86Effect effect, int32_t operand = 0) {
    return {.effect = effect, .operand = operand};
  }

  const X86Encoding& code_;
};

}  // namespace

std::optional<X86Instruction> decode_x86(Bytes code) {
  const auto encoding = read_x86_encoding(code);
  if (!encoding) return std::nullopt;
  X86Instruction result = Effects(*encoding).effect();
  result.size_bytes = static_cast<uint8_t>(encoding->size_bytes);
  return result;
}

}  // namespace sentry_prof::unwind
