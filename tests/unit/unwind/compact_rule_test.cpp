#include "unwind/compact_rule.h"

#include "support/catch2.h"
#include "support/fake_cfi.h"

using namespace sentry_prof;
using namespace sentry_prof::unwind;
using namespace sentry_prof::test;

namespace {

constexpr ArchRegisters kX86 = arch_registers(Arch::X86_64);

CompactRule compact(const Row& row) { return compact_rule_of(row, kX86); }

}  // namespace

TEST_CASE("a frameless row becomes CFA from sp, in words") {
  CHECK(compact(row_with_cfa(kRsp, 48)) == CompactRule{.kind = CompactKind::CfaFromSp,
                                                       .fp = CompactFp::Same,
                                                       .cfa_words = 6,
                                                       .return_address_words = -1});
}

TEST_CASE("a row with a frame pointer becomes CFA from fp with fp saved") {
  CHECK(compact(saving(row_with_cfa(kRbp, 16), kRbp, -16)) ==
        CompactRule{.kind = CompactKind::CfaFromFp,
                    .fp = CompactFp::Saved,
                    .cfa_words = 2,
                    .fp_words = -2,
                    .return_address_words = -1});
}

TEST_CASE("an undefined frame pointer is unknown, one of the same value stays") {
  Row row = row_with_cfa(kRsp, 8);
  row.rules[kRbp] = {.kind = RuleKind::Undefined};
  CHECK(compact(row).fp == CompactFp::Unknown);
  row.rules[kRbp] = {.kind = RuleKind::SameValue};
  CHECK(compact(row).fp == CompactFp::Same);
}

TEST_CASE("an undefined return address is the root") {
  CHECK(compact(root_row()).kind == CompactKind::Root);
}

TEST_CASE("registers that the fast walk does not keep do not matter") {
  CHECK(compact(saving(row_with_cfa(kRsp, 24), kRbx, -16)) == compact(row_with_cfa(kRsp, 24)));
}

TEST_CASE("the largest offsets that fit are kept exactly, the next one is Full") {
  CHECK(compact(row_with_cfa(kRsp, 32767 * 8)).cfa_words == 32767);
  CHECK(compact(row_with_cfa(kRbp, 32768 * 8)).kind == CompactKind::Full);
  CHECK(compact(saving(row_with_cfa(kRsp, 8), kRbp, -32768 * 8)).fp_words == -32768);
  CHECK(compact(saving(row_with_cfa(kRsp, 8), kRbp, -32769 * 8)).kind == CompactKind::Full);
}

TEST_CASE("a large frame without a frame pointer is far, up to 32 GiB") {
  for (const uint64_t words : {uint64_t{32768}, uint64_t{0x1'2345}, uint64_t{UINT32_MAX}}) {
    const CompactRule rule =
        compact(saving(row_with_cfa(kRsp, static_cast<int64_t>(words * 8)), kRbp, -16));
    CHECK(rule.kind == CompactKind::CfaFarFromSp);
    CHECK(rule.far_cfa_bytes() == words * 8);
    CHECK(rule.fp_words == -2);
  }
  CHECK(compact(row_with_cfa(kRsp, (int64_t{1} << 32) * 8)).kind == CompactKind::Full);
  CHECK(compact(row_with_cfa(kRsp, -32769 * 8)).kind == CompactKind::Full);
  Row other_place = row_with_cfa(kRsp, 40000 * 8);
  other_place.rules[kRip].offset = -16;
  CHECK(compact(other_place).kind == CompactKind::Full);
}

TEST_CASE("what a compact rule cannot say is Full") {
  Row odd_cfa = row_with_cfa(kRsp, 12);
  CHECK(compact(odd_cfa).kind == CompactKind::Full);
  CHECK(compact(row_with_cfa(kR10, 0)).kind == CompactKind::Full);
  CHECK(compact(saving(row_with_cfa(kRsp, 8), kRbp, -12)).kind == CompactKind::Full);

  Row expression = row_with_cfa(kRsp, 8);
  expression.cfa_kind = CfaKind::Expression;
  CHECK(compact(expression).kind == CompactKind::Full);

  Row return_address_in_register = row_with_cfa(kRsp, 8);
  return_address_in_register.rules[kRip] = {.kind = RuleKind::Register, .source_register = kRdi};
  CHECK(compact(return_address_in_register).kind == CompactKind::Full);

  Row fp_in_register = row_with_cfa(kRsp, 8);
  fp_in_register.rules[kRbp] = {.kind = RuleKind::Register, .source_register = kRbx};
  CHECK(compact(fp_in_register).kind == CompactKind::Full);

  Row own_stack_pointer = saving(row_with_cfa(kRsp, 8), kRsp, -16);
  CHECK(compact(own_stack_pointer).kind == CompactKind::Full);

  Row signal_frame = row_with_cfa(kRsp, 8);
  signal_frame.is_signal_frame = true;
  CHECK(compact(signal_frame).kind == CompactKind::Full);
}

TEST_CASE("a row without a CFA is Full, where the evaluation refuses it") {
  Row row = row_with_cfa(kRsp, 8);
  row.cfa_kind = CfaKind::Unset;
  CHECK(compact(row).kind == CompactKind::Full);
}

TEST_CASE("a return address register beyond those we keep is unsupported") {
  Row row = row_with_cfa(kRsp, 8);
  row.return_address_register = kRegisterCount;
  CHECK(compact(row).kind == CompactKind::Unsupported);
}

TEST_CASE("an aarch64 row with a frame record is compact") {
  Row row;
  row.cfa_kind = CfaKind::RegisterOffset;
  row.cfa_register = 29;
  row.cfa_offset = 32;
  row.return_address_register = 30;
  row.rules[29] = {.kind = RuleKind::AtCfaOffset, .offset = -32};
  row.rules[30] = {.kind = RuleKind::AtCfaOffset, .offset = -24};
  CHECK(compact_rule_of(row, arch_registers(Arch::Aarch64)) ==
        CompactRule{.kind = CompactKind::CfaFromFp,
                    .fp = CompactFp::Saved,
                    .cfa_words = 4,
                    .fp_words = -4,
                    .return_address_words = -3});
}

TEST_CASE("an aarch64 row that leaves the return address in the link register is compact") {
  const ArchRegisters aarch64 = arch_registers(Arch::Aarch64);
  Row row;
  row.cfa_kind = CfaKind::RegisterOffset;
  row.cfa_register = 31;
  row.cfa_offset = 32;
  row.return_address_register = 30;
  const CompactRule expected{.kind = CompactKind::LinkFromSp, .cfa_words = 4};
  CHECK(compact_rule_of(row, aarch64) == expected);
  row.rules[30] = {.kind = RuleKind::SameValue};
  CHECK(compact_rule_of(row, aarch64) == expected);
  Row by_fp = row;
  by_fp.cfa_register = 29;
  CHECK(compact_rule_of(by_fp, aarch64).kind == CompactKind::Full);
  Row saves_fp = row;
  saves_fp.rules[29] = {.kind = RuleKind::AtCfaOffset, .offset = -32};
  CHECK(compact_rule_of(saves_fp, aarch64).kind == CompactKind::Full);
  CHECK(compact_rule_of(row, kX86).kind == CompactKind::Full);  // which has no link register
}

TEST_CASE("answers without a row are rules of their own") {
  CHECK(compact_rule_of(RowStatus::NoCfi).kind == CompactKind::NoCfi);
  CHECK(compact_rule_of(RowStatus::Root).kind == CompactKind::Root);
  CHECK(compact_rule_of(RowStatus::Malformed).kind == CompactKind::Malformed);
  CHECK(compact_rule_of(RowStatus::Unsupported).kind == CompactKind::Unsupported);
}
