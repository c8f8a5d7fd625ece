// Where the stack pointer and the caller's frame pointer are after some instructions of x86-64,
// relative to what the registers were before them.
#pragma once

#include "unwind/compact_rule.h"
#include "unwind/x86_instruction.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

class CodeState {
 public:
  // What the instruction does to registers; not where the code goes on behind it.
  void apply(const X86Instruction& instruction);

  // By its DWARF number, one of kX86FollowedRegisters.
  bool has_overwritten(unsigned number) const { return (overwritten_ >> number & 1) != 0; }
  bool is_at_same_sp(const CodeState& other) const {
    return sp_is_known_ == other.sp_is_known_ && base_ == other.base_ &&
           offset_bytes_ == other.offset_bytes_;
  }

  // The rule of the first instruction if the code returns in this state, and takes that much more
  // off the stack. NoCfi where the return address cannot be told.
  CompactRule rule(int32_t arguments_bytes) const;
  // The rule of an instruction that is reached in this state, if the first one began a function.
  CompactRule rule_of_function() const;

 private:
  // Code with a realigned stack has its stack pointer elsewhere: Register is one of
  // kX86FollowedRegisters, Word a word of the stack.
  enum class Base : uint8_t { Sp, Fp, Register, Word };

  // A word that was on the stack at the pc in question.
  struct Place {
    Base base = Base::Sp;  // Sp or Fp
    int64_t offset_bytes = 0;
  };

  // Where the frame pointer's value is.
  struct FpValue {
    enum class Kind : uint8_t {
      Original,  // still in the register, or put back
      AtSp,      // it is an address of the stack: sp + offset_bytes
      InMemory,  // at `base` + offset_bytes
      Unknown,
    };
    Kind kind = Kind::Original;
    Base base = Base::Sp;
    int64_t offset_bytes = 0;
  };

  void move_sp(int64_t bytes);
  void push();
  void push_fp();
  void pop_fp();
  void save_fp(int64_t bytes);
  void restore_fp(int64_t bytes);
  void load_fp(int64_t from_bytes);
  void follow_fp();
  void sp_from_fp(int64_t bytes);
  void sp_from_register(const X86Instruction& instruction);
  void sp_from_stack(int64_t bytes);
  void overwrite_sp();
  void load_r10(int64_t bytes);
  void push_r10();
  void pop_r10();
  void restore_r10();
  std::optional<Place> place_at_sp(int64_t bytes) const;
  void stand_on_word(Place word, int64_t offset_bytes);
  void stand_on(Base base, int64_t offset_bytes);
  void fp_from_sp(int64_t bytes);

  bool is_plausible() const;
  CompactRule rule_of(Base base, int64_t return_address_bytes, int32_t arguments_bytes) const;
  static bool is_in_frame(Base base) { return base == Base::Sp || base == Base::Fp; }
  std::optional<int16_t> place_of_base(Base base) const;
  CompactKind kind_of(Base base) const;

  Base base_ = Base::Sp;
  unsigned base_register_ = 0;  // its number, with Base::Register
  Place word_;                  // with Base::Word
  std::optional<Place> r10_;    // what was loaded into it
  bool r10_is_saved_ = false;   // what it was is on the stack
  int64_t offset_bytes_ = 0;    // the stack pointer is base + this
  X86Registers overwritten_ = 0;
  bool sp_is_known_ = true;
  FpValue fp_;
  // The last frame pointer that was saved from here on, and where; it is not on the stack yet.
  FpValue saved_;
  int64_t saved_at_bytes_ = INT64_MAX;
};

}  // namespace sentry_prof::unwind
