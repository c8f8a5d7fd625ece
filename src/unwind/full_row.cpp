#include "unwind/full_row.h"

#include "unwind/dwarf_expression.h"

#include <optional>

namespace sentry_prof::unwind {
namespace {

// The value of one register in the caller, or why there is none.
struct Value {
  RowOutcome outcome = RowOutcome::Stepped;
  uint64_t value = 0;
  RuntimeAddress failed_address;
};

RowOutcome outcome_of(ExpressionStatus status) {
  switch (status) {
    case ExpressionStatus::Ok:
      return RowOutcome::Stepped;
    case ExpressionStatus::BadMemory:
      return RowOutcome::BadMemory;
    case ExpressionStatus::UnknownRegister:
      return RowOutcome::UnknownRegister;
    case ExpressionStatus::Malformed:
      return RowOutcome::Malformed;
    case ExpressionStatus::Unsupported:
      break;
  }
  return RowOutcome::Unsupported;
}

Value value_of(const ExpressionResult& result) {
  return {outcome_of(result.status), result.value, result.failed_address};
}

// psABI figure 3.4: rbx, rsp, rbp, r12-r15. AAPCS64 6.1.1: x19-x29, sp.
bool is_preserved_by_calls(unsigned reg, Arch arch) {
  if (arch == Arch::X86_64) return reg == 3 || reg == 6 || reg == 7 || (reg >= 12 && reg <= 15);
  return (reg >= 19 && reg <= 29) || reg == 31;
}

class RowEvaluator {
 public:
  RowEvaluator(const Row& row, Arch arch, const CalleeFrame& callee, const StackSnapshot& stack)
      : row_(row), arch_(arch), callee_(callee), stack_(stack) {}

  RowResult run() {
    RowResult result = find_caller();
    result.work = steps_;
    return result;
  }

 private:
  RowResult find_caller() {
    if (row_.return_address_register >= kRegisterCount) return failed(RowOutcome::Unsupported);
    if (rule(row_.return_address_register).kind == RuleKind::Undefined) {
      return failed(RowOutcome::Root);
    }
    const Value cfa = find_cfa();
    if (cfa.outcome != RowOutcome::Stepped) return failed(cfa);
    cfa_ = cfa.value;
    return find_registers();
  }

  const RegisterRule& rule(unsigned reg) const { return row_.rules[reg]; }

  static RowResult failed(RowOutcome outcome) { return {.outcome = outcome}; }
  static RowResult failed(const Value& value) {
    return {.outcome = value.outcome, .failed_address = value.failed_address};
  }

  Value known(unsigned reg) const {
    if (!callee_.registers.is_known(reg)) return {.outcome = RowOutcome::UnknownRegister};
    return {.value = callee_.registers.get(reg)};
  }

  Value find_cfa() {
    switch (row_.cfa_kind) {
      case CfaKind::RegisterOffset: {
        Value base = known(row_.cfa_register);
        base.value += static_cast<uint64_t>(row_.cfa_offset);
        return base;
      }
      case CfaKind::Expression:
        return evaluate(row_.cfa_expression, std::nullopt);
      case CfaKind::Unset:
        break;
    }
    return {.outcome = RowOutcome::Malformed};
  }

  Value evaluate(Bytes expression, std::optional<uint64_t> initial) {
    const ExpressionResult result =
        evaluate_expression(expression, callee_.registers, stack_, initial);
    steps_ += result.steps;
    return value_of(result);
  }

  RowResult find_registers() {
    const ArchRegisters names = arch_registers(arch_);
    const Value pc = find_return_address(names);
    if (pc.outcome != RowOutcome::Stepped) return failed(pc);
    const Value sp = rule(names.stack_pointer).kind == RuleKind::Unspecified
                         ? Value{.value = cfa_}
                         : find(names.stack_pointer);
    if (sp.outcome != RowOutcome::Stepped) return failed(sp);

    RowResult result{.outcome = RowOutcome::Stepped};
    for (unsigned reg = 0; reg < kRegisterCount; ++reg) {
      if (const Value value = find(reg); value.outcome == RowOutcome::Stepped) {
        result.caller.set(reg, value.value);
      }
    }
    // The call itself overwrote a link register (aarch64).
    if (!row_.is_signal_frame) result.caller.forget(row_.return_address_register);
    result.caller.set(names.stack_pointer, sp.value);
    result.caller.set(names.program_counter, pc.value);
    return result;
  }

  Value find_return_address(ArchRegisters names) {
    const unsigned reg = row_.return_address_register;
    const RuleKind kind = rule(reg).kind;
    if (kind != RuleKind::Unspecified && kind != RuleKind::SameValue) return find(reg);
    // "Still in its register" says nothing where the register is the pc itself.
    if (reg == names.program_counter) return {.outcome = RowOutcome::Malformed};
    return known(reg);
  }

  Value find(unsigned reg) {
    const RegisterRule& r = rule(reg);
    switch (r.kind) {
      case RuleKind::Unspecified:
        if (!row_.is_signal_frame && !is_preserved_by_calls(reg, arch_)) break;
        return known(reg);
      case RuleKind::Undefined:
        break;
      case RuleKind::SameValue:
        return known(reg);
      case RuleKind::AtCfaOffset:
        return load(reg, cfa_ + static_cast<uint64_t>(r.offset));
      case RuleKind::ValCfaOffset:
        return {.value = cfa_ + static_cast<uint64_t>(r.offset)};
      case RuleKind::Register:
        return known(r.source_register);
      case RuleKind::AtExpression: {
        const Value address = evaluate(r.expression, cfa_);
        return address.outcome == RowOutcome::Stepped ? load(reg, address.value) : address;
      }
      case RuleKind::ValExpression:
        return evaluate(r.expression, cfa_);
    }
    return {.outcome = RowOutcome::UnknownRegister};
  }

  Value load(unsigned reg, uint64_t address) const {
    Value loaded;
    if (stack_.read_u64({address}, loaded.value)) return loaded;
    const ArchRegisters names = arch_registers(arch_);
    const uint64_t sp = callee_.registers.get(names.stack_pointer);
    // Popped already. A return address that is popped is the pc: not this function's any more.
    const bool may_be_popped = callee_.is_leaf && reg != names.program_counter;
    if (may_be_popped && is_in_red_zone(address, sp)) return known(reg);
    return {.outcome = RowOutcome::BadMemory, .failed_address = {address}};
  }

  const Row& row_;
  const Arch arch_;
  const CalleeFrame& callee_;
  const StackSnapshot& stack_;
  uint64_t cfa_ = 0;
  uint32_t steps_ = 0;
};

}  // namespace

RowResult apply_row(const Row& row, Arch arch, const CalleeFrame& callee,
                    const StackSnapshot& stack) {
  return RowEvaluator(row, arch, callee, stack).run();
}

}  // namespace sentry_prof::unwind
