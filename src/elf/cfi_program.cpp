#include "elf/cfi_program.h"

#include "base/checked.h"

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>

namespace sentry_prof::elf {

namespace {

using unwind::CfaKind;
using unwind::kRegisterCount;
using unwind::RegisterRule;
using unwind::Row;
using unwind::RuleKind;

// DW_CFA_*. The first three carry an operand in their low six bits.
enum Opcode : uint8_t {
  kAdvanceLoc = 0x40,
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kMipsAdvanceLoc8 = 0x1d,
  kAarch64SetRaState = 0x2b,
  kAarch64NegateRaStateWithPc = 0x2c,
  kAarch64NegateRaState = 0x2d,  // on SPARC, which is not handled: GNU_window_save
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
};

constexpr unsigned kAarch64RaSignState = 34;                         // AADWARF64, section 4.1
constexpr std::array<std::byte, 1> kLiteralOne = {std::byte{0x31}};  // DW_OP_lit1

// To copy a whole row takes as long as to run this many other instructions.
constexpr uint32_t kCopyWork = 8;

// Room for a row that is not made until it is needed: most programs remember none, and clearing the
// room for all would take longer than running them.
static_assert(std::is_trivially_destructible_v<Row>);
struct RowRoom {
  union {
    Row row;
  };
  RowRoom() {}  // NOLINT: leaves `row` unmade
};

class RowProgram {
 public:
  RowProgram(const FrameSection& section, const Cie& cie, const Fde& fde, uint64_t pc)
      : section_(section), cie_(cie), fde_(fde), pc_(pc), reader_(section.reader(0, 0)) {}

  CfiStatus run(Row& row);

 private:
  void run(const ProgramRange& program);
  void step();
  void step_extended(uint8_t opcode);

  void advance(uint64_t factored);
  void set_location();
  void move_to(uint64_t location);

  void define_cfa(uint64_t reg, int64_t offset);
  void define_cfa_register(uint64_t reg);
  void define_cfa_offset(int64_t offset);
  void define_cfa_expression();

  void set_rule(uint64_t reg, const RegisterRule& rule);
  void set_plain(uint64_t reg, RuleKind kind) { set_rule(reg, {kind, 0, 0, {}}); }
  void set_offset(uint64_t reg, RuleKind kind, int64_t offset);
  void set_expression(uint64_t reg, RuleKind kind);
  void set_register(uint64_t reg, uint64_t source);
  void restore_rule(uint64_t reg);
  void remember();
  void restore();
  void negate_ra_state();
  void set_ra_state();
  void set_signed(bool is_signed);

  uint64_t read_register() { return reader_.uleb128(); }
  int64_t read_offset();
  int64_t read_factored();
  int64_t read_factored_signed() { return factored(reader_.sleb128()); }
  int64_t factored(int64_t operand);
  int64_t to_signed(uint64_t operand);
  Bytes read_expression();
  bool check_register(uint64_t reg);
  CfiStatus check_result() const;

  void fail(CfiStatus status) {
    if (status_ == CfiStatus::Ok) status_ = status;
  }

  const FrameSection& section_;
  const Cie& cie_;
  const Fde& fde_;
  const uint64_t pc_;
  ByteReader reader_;
  CfiStatus status_ = CfiStatus::Ok;
  bool is_initial_ = true;     // running the CIE's instructions
  bool reached_next_ = false;  // the row of pc_ is complete
  Row row_;
  RowRoom initial_;  // the row that the CIE gives; made unless is_initial_
  std::array<RowRoom, CfiLimits::kRememberDepth> remembered_;
  unsigned remembered_count_ = 0;
  uint32_t work_ = 0;
};

// --- Running ---

CfiStatus RowProgram::run(Row& row) {
  row_.function_begin = row_.begin = fde_.begin;
  row_.end = fde_.end;
  row_.return_address_register = cie_.return_address_register;
  row_.is_signal_frame = cie_.is_signal_frame;
  run(cie_.program);
  std::construct_at(&initial_.row, row_);
  is_initial_ = false;
  remembered_count_ = 0;
  if (status_ == CfiStatus::Ok) run(fde_.program);
  fail(check_result());
  work_ += row.work;
  if (status_ == CfiStatus::Ok) row = row_;
  row.work = work_;
  return status_;
}

void RowProgram::run(const ProgramRange& program) {
  if (program.end - program.begin > CfiLimits::kProgram_bytes) return fail(CfiStatus::Unsupported);
  reader_ = section_.reader(program.begin, program.end);
  while (!reader_.at_end() && !reached_next_ && status_ == CfiStatus::Ok) {
    step();
    if (!reader_.ok()) fail(CfiStatus::Malformed);
  }
  work_ += static_cast<uint32_t>(reader_.position() - program.begin);
}

// Registers that a Row has no place for can be read over, but not be what the walk stands on.
CfiStatus RowProgram::check_result() const {
  const bool has_cfa =
      row_.cfa_kind != CfaKind::RegisterOffset || row_.cfa_register < kRegisterCount;
  const bool has_return = row_.return_address_register < kRegisterCount;
  return has_cfa && has_return ? CfiStatus::Ok : CfiStatus::Unsupported;
}

void RowProgram::step() {
  const uint8_t opcode = reader_.u8();
  const uint8_t operand = opcode & 0x3f;
  switch (opcode & 0xc0) {
    case kAdvanceLoc:
      return advance(operand);
    case kOffset:
      return set_offset(operand, RuleKind::AtCfaOffset, read_factored());
    case kRestore:
      return restore_rule(operand);
    default:
      return step_extended(opcode);
  }
}

// Where two operands follow, the first is read in a statement of its own: C++ leaves the order in
// which arguments are evaluated open.
void RowProgram::step_extended(uint8_t opcode) {
  uint64_t reg = 0;
  switch (opcode) {
    case kNop:
      return;
    case kSetLoc:
      return set_location();
    case kAdvanceLoc1:
      return advance(reader_.u8());
    case kAdvanceLoc2:
      return advance(reader_.u16());
    case kAdvanceLoc4:
      return advance(reader_.u32());
    case kMipsAdvanceLoc8:
      return advance(reader_.u64());

    case kDefCfa:
      reg = read_register();
      return define_cfa(reg, read_offset());
    case kDefCfaSf:
      reg = read_register();
      return define_cfa(reg, read_factored_signed());
    case kDefCfaRegister:
      return define_cfa_register(read_register());
    case kDefCfaOffset:
      return define_cfa_offset(read_offset());
    case kDefCfaOffsetSf:
      return define_cfa_offset(read_factored_signed());
    case kDefCfaExpression:
      return define_cfa_expression();

    case kOffsetExtended:
      reg = read_register();
      return set_offset(reg, RuleKind::AtCfaOffset, read_factored());
    case kOffsetExtendedSf:
      reg = read_register();
      return set_offset(reg, RuleKind::AtCfaOffset, read_factored_signed());
    case kGnuNegativeOffsetExtended:
      reg = read_register();
      return set_offset(reg, RuleKind::AtCfaOffset, factored(-to_signed(reader_.uleb128())));
    case kValOffset:
      reg = read_register();
      return set_offset(reg, RuleKind::ValCfaOffset, read_factored());
    case kValOffsetSf:
      reg = read_register();
      return set_offset(reg, RuleKind::ValCfaOffset, read_factored_signed());
    case kExpression:
      return set_expression(read_register(), RuleKind::AtExpression);
    case kValExpression:
      return set_expression(read_register(), RuleKind::ValExpression);
    case kRegister:
      reg = read_register();
      return set_register(reg, read_register());
    case kUndefined:
      return set_plain(read_register(), RuleKind::Undefined);
    case kSameValue:
      return set_plain(read_register(), RuleKind::SameValue);
    case kRestoreExtended:
      return restore_rule(read_register());

    case kRememberState:
      return remember();
    case kRestoreState:
      return restore();
    case kAarch64SetRaState:
      return set_ra_state();
    case kAarch64NegateRaStateWithPc:  // signed with the pc, too: nothing that a walk checks
    case kAarch64NegateRaState:
      return negate_ra_state();
    case kGnuArgsSize:
      reader_.uleb128();
      return;  // matters only to landing pads
    default:
      return fail(CfiStatus::Unsupported);
  }
}

// --- Location ---

void RowProgram::advance(uint64_t factored) {
  uint64_t distance = 0;
  uint64_t location = 0;
  if (!checked_mul(factored, cie_.code_alignment, distance) ||
      !checked_add(row_.begin.value, distance, location)) {
    return fail(CfiStatus::Malformed);
  }
  move_to(location);
}

void RowProgram::set_location() {
  uint64_t location = 0;
  const PointerBases bases = pointer_bases(section_, cie_, fde_.begin.value);
  const CfiStatus status = read_pointer(reader_, cie_.fde_encoding, bases, location);
  if (status != CfiStatus::Ok) return fail(status);
  move_to(location);
}

void RowProgram::move_to(uint64_t location) {
  // Rows are in ascending order, and a CIE has but one.
  if (!reader_.ok() || is_initial_ || location < row_.begin.value) {
    return fail(CfiStatus::Malformed);
  }
  if (location <= pc_) {
    row_.begin = {location};
  } else {
    row_.end = {std::min(location, fde_.end.value)};
    reached_next_ = true;
  }
}

// --- CFA ---

void RowProgram::define_cfa(uint64_t reg, int64_t offset) {
  if (!check_register(reg)) return;
  row_.cfa_kind = CfaKind::RegisterOffset;
  row_.cfa_register = static_cast<uint16_t>(reg);
  row_.cfa_offset = offset;
  row_.cfa_expression = {};
}

// DWARF 5, section 6.4.2.2 wants a register and an offset here. Hand-written code (libgcrypt 1.10)
// goes from an expression back to a register; the offset from before the expression holds again,
// as in the C++ runtimes that such code is tested with.
void RowProgram::define_cfa_register(uint64_t reg) {
  if (row_.cfa_kind == CfaKind::Unset) return fail(CfiStatus::Malformed);
  define_cfa(reg, row_.cfa_offset);
}

// Likewise behind an expression: gcc 14 ends aarch64 functions so whose frames are in units of the
// vector length (Debian 13's libmvec), and means the register from before. The CIE names one.
void RowProgram::define_cfa_offset(int64_t offset) {
  const bool has_register = row_.cfa_kind == CfaKind::RegisterOffset ||
                            (row_.cfa_kind == CfaKind::Expression && !is_initial_ &&
                             initial_.row.cfa_kind == CfaKind::RegisterOffset);
  if (!has_register) return fail(CfiStatus::Malformed);
  define_cfa(row_.cfa_register, offset);
}

void RowProgram::define_cfa_expression() {
  row_.cfa_kind = CfaKind::Expression;
  row_.cfa_expression = read_expression();
}

// --- Register rules ---

void RowProgram::set_rule(uint64_t reg, const RegisterRule& rule) {
  if (check_register(reg) && reg < kRegisterCount) row_.rules[reg] = rule;
}

void RowProgram::set_offset(uint64_t reg, RuleKind kind, int64_t offset) {
  set_rule(reg, {kind, 0, offset, {}});
}

void RowProgram::set_expression(uint64_t reg, RuleKind kind) {
  set_rule(reg, {kind, 0, 0, read_expression()});
}

void RowProgram::set_register(uint64_t reg, uint64_t source) {
  if (!check_register(source)) return;
  set_rule(reg, {RuleKind::Register, static_cast<uint16_t>(source), 0, {}});
}

void RowProgram::restore_rule(uint64_t reg) {
  if (is_initial_) return fail(CfiStatus::Malformed);
  if (reg < kRegisterCount) return set_rule(reg, initial_.row.rules[reg]);
  check_register(reg);
}

void RowProgram::remember() {
  if (remembered_count_ == remembered_.size()) return fail(CfiStatus::Unsupported);
  std::construct_at(&remembered_[remembered_count_++].row, row_);
  work_ += kCopyWork;
}

// The CFA comes back as well, as all producers and consumers have it; the location does not.
void RowProgram::restore() {
  if (remembered_count_ == 0) return fail(CfiStatus::Malformed);
  const LinkAddress begin = row_.begin;
  row_ = remembered_[--remembered_count_].row;
  row_.begin = begin;
  work_ += kCopyWork;
}

// RA_SIGN_STATE is 0 at first: the return address is not signed. The instruction flips it.
void RowProgram::negate_ra_state() {
  set_signed(row_.rules[kAarch64RaSignState].kind != RuleKind::ValExpression);
}

// Which state, and where it was signed: with the pc or without it (2 or 1) is nothing that a walk
// checks.
void RowProgram::set_ra_state() {
  const uint64_t state = reader_.uleb128();
  reader_.sleb128();
  set_signed(state != 0);
}

void RowProgram::set_signed(bool is_signed) {
  set_rule(kAarch64RaSignState,
           is_signed ? RegisterRule{RuleKind::ValExpression, 0, 0, kLiteralOne} : RegisterRule{});
}

// --- Operands ---

bool RowProgram::check_register(uint64_t reg) {
  if (reg > CfiLimits::kRegister) fail(CfiStatus::Unsupported);
  return reg <= CfiLimits::kRegister;
}

int64_t RowProgram::to_signed(uint64_t operand) {
  if (operand > static_cast<uint64_t>(INT64_MAX)) {
    fail(CfiStatus::Malformed);
    return 0;
  }
  return static_cast<int64_t>(operand);
}

int64_t RowProgram::read_offset() { return to_signed(reader_.uleb128()); }

int64_t RowProgram::read_factored() { return factored(to_signed(reader_.uleb128())); }

int64_t RowProgram::factored(int64_t operand) {
  int64_t offset = 0;
  if (!checked_mul(operand, cie_.data_alignment, offset)) fail(CfiStatus::Malformed);
  return offset;
}

Bytes RowProgram::read_expression() {
  const uint64_t size = reader_.uleb128();
  if (size > CfiLimits::kExpression_bytes) {
    fail(CfiStatus::Unsupported);
    return {};
  }
  return reader_.bytes(size);
}

}  // namespace

CfiStatus evaluate_row(const FrameSection& section, const Cie& cie, const Fde& fde, uint64_t pc,
                       Row& row) {
  return RowProgram(section, cie, fde, pc).run(row);
}

}  // namespace sentry_prof::elf
