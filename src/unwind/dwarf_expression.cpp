#include "unwind/dwarf_expression.h"

#include <array>

namespace sentry_prof::unwind {
namespace {

// DWARF 5, table 7.9. Ranges of opcodes are named by their first.
enum Operation : uint8_t {
  kDeref = 0x06,
  kConst1u = 0x08,
  kConst1s = 0x09,
  kConst2u = 0x0a,
  kConst2s = 0x0b,
  kConst4u = 0x0c,
  kConst4s = 0x0d,
  kConst8u = 0x0e,
  kConst8s = 0x0f,
  kConstu = 0x10,
  kConsts = 0x11,
  kDup = 0x12,
  kDrop = 0x13,
  kOver = 0x14,
  kPick = 0x15,
  kSwap = 0x16,
  kRot = 0x17,
  kAbs = 0x19,
  kAnd = 0x1a,
  kDiv = 0x1b,
  kMinus = 0x1c,
  kMod = 0x1d,
  kMul = 0x1e,
  kNeg = 0x1f,
  kNot = 0x20,
  kOr = 0x21,
  kPlus = 0x22,
  kPlusUconst = 0x23,
  kShl = 0x24,
  kShr = 0x25,
  kShra = 0x26,
  kXor = 0x27,
  kBra = 0x28,
  kEq = 0x29,
  kGe = 0x2a,
  kGt = 0x2b,
  kLe = 0x2c,
  kLt = 0x2d,
  kNe = 0x2e,
  kSkip = 0x2f,
  kLit0 = 0x30,
  kLit31 = 0x4f,
  kBreg0 = 0x70,
  kBreg31 = 0x8f,
  kBregx = 0x92,
  kDerefSize = 0x94,
  kNop = 0x96,
};

int64_t as_signed(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t as_unsigned(int64_t value) { return static_cast<uint64_t>(value); }

// Shifts by the width or more are undefined in C++; here they shift everything out.
uint64_t shift_left(uint64_t value, uint64_t count) { return count < 64 ? value << count : 0; }
uint64_t shift_right(uint64_t value, uint64_t count) { return count < 64 ? value >> count : 0; }
uint64_t shift_right_signed(uint64_t value, uint64_t count) {
  return as_unsigned(as_signed(value) >> (count < 64 ? count : 63));
}

// The divisor is not 0. INT64_MIN / -1 overflows in C++; it wraps here.
uint64_t divide_signed(uint64_t dividend, uint64_t divisor) {
  if (divisor == UINT64_MAX) return 0 - dividend;
  return as_unsigned(as_signed(dividend) / as_signed(divisor));
}

class Machine {
 public:
  Machine(Bytes expression, const Registers& registers, const StackSnapshot& stack)
      : code_(expression), registers_(registers), memory_(stack) {}

  void push(uint64_t value) {
    if (depth_ == kMaxExpressionDepth) return fail(ExpressionStatus::Unsupported);
    values_[depth_++] = value;
  }

  ExpressionResult run() {
    unsigned steps = 0;
    for (; status_ == ExpressionStatus::Ok && !code_.at_end(); ++steps) {
      if (steps == kMaxExpressionSteps) return {ExpressionStatus::Unsupported, 0, {}, steps};
      step(code_.u8());
      if (!code_.ok()) fail(ExpressionStatus::Malformed);
    }
    const uint64_t result = pop();
    return {status_, result, failed_address_, steps};
  }

 private:
  // The first failure counts; those that follow from it do not.
  void fail(ExpressionStatus status) {
    if (status_ == ExpressionStatus::Ok) status_ = status;
  }

  uint64_t pop() {
    if (depth_ == 0) {
      fail(ExpressionStatus::Malformed);
      return 0;
    }
    return values_[--depth_];
  }

  // The entry that lies `index` below the top.
  uint64_t peek(unsigned index) {
    if (index >= depth_) {
      fail(ExpressionStatus::Malformed);
      return 0;
    }
    return values_[depth_ - 1 - index];
  }

  void push_register(uint64_t number, int64_t offset) {
    if (number >= kRegisterCount || !registers_.is_known(static_cast<unsigned>(number))) {
      return fail(ExpressionStatus::UnknownRegister);
    }
    push(registers_.get(static_cast<unsigned>(number)) + as_unsigned(offset));
  }

  void dereference(unsigned size) {
    const RuntimeAddress address{pop()};
    if (size != 1 && size != 2 && size != 4 && size != 8) return fail(ExpressionStatus::Malformed);
    uint64_t value = 0;
    if (status_ == ExpressionStatus::Ok && !memory_.read_sized(address, size, value)) {
      failed_address_ = address;
      return fail(ExpressionStatus::BadMemory);
    }
    push(value);
  }

  void branch(bool is_taken, int16_t distance) {
    if (!is_taken || !code_.ok()) return;
    const int64_t target = static_cast<int64_t>(code_.position()) + distance;
    if (target < 0) return fail(ExpressionStatus::Malformed);
    code_.seek(as_unsigned(target));
  }

  void swap() {
    const uint64_t top = pop();
    const uint64_t second = pop();
    push(top);
    push(second);
  }

  // "The top three entries rotate: the top becomes the third, the second the top."
  void rotate() {
    const uint64_t top = pop();
    const uint64_t second = pop();
    const uint64_t third = pop();
    push(top);
    push(third);
    push(second);
  }

  void step(uint8_t operation) {
    if (operation >= kLit0 && operation <= kLit31) return push(operation - kLit0);
    if (operation >= kBreg0 && operation <= kBreg31) {
      return push_register(operation - kBreg0, code_.sleb128());
    }
    if (operation >= kConst1u && operation <= kConsts) return push_constant(operation);
    if (operation >= kDup && operation <= kRot) return shuffle(operation);
    if (is_unary(operation)) return unary(operation);
    if (is_binary(operation)) return binary(operation);
    switch (operation) {
      case kDeref:
        return dereference(8);
      case kDerefSize:
        return dereference(code_.u8());
      case kBregx: {
        const uint64_t number = code_.uleb128();
        return push_register(number, code_.sleb128());
      }
      case kSkip:
        return branch(true, code_.i16());
      case kBra: {
        const int16_t distance = code_.i16();
        return branch(pop() != 0, distance);
      }
      case kNop:
        return;
      default:
        return fail(ExpressionStatus::Unsupported);
    }
  }

  void push_constant(uint8_t operation) {
    switch (operation) {
      case kConst1u:
        return push(code_.u8());
      case kConst1s:
        return push(as_unsigned(code_.i8()));
      case kConst2u:
        return push(code_.u16());
      case kConst2s:
        return push(as_unsigned(code_.i16()));
      case kConst4u:
        return push(code_.u32());
      case kConst4s:
        return push(as_unsigned(code_.i32()));
      case kConst8u:
      case kConst8s:
        return push(code_.u64());
      case kConstu:
        return push(code_.uleb128());
      default:
        return push(as_unsigned(code_.sleb128()));
    }
  }

  void shuffle(uint8_t operation) {
    switch (operation) {
      case kDup:
        return push(peek(0));
      case kDrop:
        pop();
        return;
      case kOver:
        return push(peek(1));
      case kPick:
        return push(peek(code_.u8()));
      case kSwap:
        return swap();
      default:
        return rotate();
    }
  }

  static bool is_unary(uint8_t operation) {
    return operation == kAbs || operation == kNeg || operation == kNot || operation == kPlusUconst;
  }

  void unary(uint8_t operation) {
    const uint64_t value = pop();
    switch (operation) {
      case kAbs:
        return push(as_signed(value) < 0 ? 0 - value : value);
      case kNeg:
        return push(0 - value);
      case kNot:
        return push(~value);
      default:
        return push(value + code_.uleb128());
    }
  }

  static bool is_binary(uint8_t operation) {
    return operation >= kAnd && operation <= kNe && operation != kBra;  // unary ones are gone
  }

  void binary(uint8_t operation) {
    const uint64_t right = pop();
    const uint64_t left = pop();
    if (operation >= kEq) return push(compare(operation, left, right) ? 1 : 0);
    if ((operation == kDiv || operation == kMod) && right == 0) {
      return fail(ExpressionStatus::Malformed);
    }
    push(combine(operation, left, right));
  }

  static uint64_t combine(uint8_t operation, uint64_t left, uint64_t right) {
    switch (operation) {
      case kAnd:
        return left & right;
      case kDiv:
        return divide_signed(left, right);
      case kMinus:
        return left - right;
      case kMod:
        return left % right;
      case kMul:
        return left * right;
      case kOr:
        return left | right;
      case kPlus:
        return left + right;
      case kShl:
        return shift_left(left, right);
      case kShr:
        return shift_right(left, right);
      case kShra:
        return shift_right_signed(left, right);
      default:
        return left ^ right;
    }
  }

  // Comparisons are signed (2.5.1.5).
  static bool compare(uint8_t operation, uint64_t left, uint64_t right) {
    const int64_t a = as_signed(left);
    const int64_t b = as_signed(right);
    switch (operation) {
      case kEq:
        return a == b;
      case kGe:
        return a >= b;
      case kGt:
        return a > b;
      case kLe:
        return a <= b;
      case kLt:
        return a < b;
      default:
        return a != b;
    }
  }

  ByteReader code_;
  const Registers& registers_;
  const StackSnapshot& memory_;
  std::array<uint64_t, kMaxExpressionDepth> values_;
  unsigned depth_ = 0;
  ExpressionStatus status_ = ExpressionStatus::Ok;
  RuntimeAddress failed_address_;
};

}  // namespace

ExpressionResult evaluate_expression(Bytes expression, const Registers& registers,
                                     const StackSnapshot& stack, std::optional<uint64_t> initial) {
  Machine machine(expression, registers, stack);
  if (initial) machine.push(*initial);
  return machine.run();
}

}  // namespace sentry_prof::unwind
