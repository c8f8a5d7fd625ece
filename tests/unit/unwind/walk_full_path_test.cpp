// Rows that compact rules cannot say: expressions, other registers, and the walk over all
// registers.
#include "support/catch2.h"
#include "unwind/walk.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

// What ld writes for a .plt section: rsp + 8 + ((rip & 15) >= 11) << 3. From offset 11 of an entry
// on, its push has been executed.
const Expression kPltCfa{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};

Row plt_row() {
  Row row = row_with_cfa(kRsp, 0);
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = kPltCfa;
  return row;
}

}  // namespace

TEST_CASE("a PLT entry is left before and after its push") {
  World w;
  w.cfi.add(0x1000, 0x1100, plt_row());
  w.cfi.add(0x3000, 0x3100, root_row());
  const Walk before = w.walk(registers_at(at(0x1040), 0x7000, 0), FakeStack(0x7000, {at(0x3050)}));
  CHECK(end_of(before) == "root");
  CHECK(pcs(before) == Pcs{0x1040, 0x3050});
  const Walk after =
      w.walk(registers_at(at(0x104b), 0x7000, 0), FakeStack(0x7000, {5, at(0x3050)}));
  CHECK(end_of(after) == "root");
  CHECK(pcs(after) == Pcs{0x104b, 0x3050});
  CHECK(w.unwinder.stats().full_rows == 2);
  CHECK(w.unwinder.stats().restarts == 0);
}

TEST_CASE(
    "a main that realigned its stack finds its CFA through the frame pointer, without a restart") {
  // lea 8(%rsp),%r10; and $-64,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10:
  // DW_CFA_def_cfa_expression (breg6 -8; deref), rbp by an expression (breg6 0).
  const Expression cfa{0x76, 0x78, 0x06};
  const Expression rbp{0x76, 0};
  World w;
  Row row = row_with_cfa(kRsp, 0);
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = cfa;
  row.rules[kRbp] = {.kind = RuleKind::AtExpression, .expression = rbp};
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x2000, 0x2100, row);
  w.cfi.add(0x3000, 0x3100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {at(0x2050),
                                 /*0x7008*/ 0x7040,       // r10: the CFA
                                 /*0x7010: rbp*/ 0x7048,  // the caller's rbp
                                 0, 0, 0, 0, /*0x7038*/ at(0x3050),
                                 /*0x7040*/ 0, /*0x7048*/ 0, at(0x4050)});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0x7010), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x3050, 0x4050});
  CHECK(w.unwinder.stats().restarts == 0);
}

TEST_CASE("a CFA from a register that an inner frame saved takes one walk over all registers") {
  World w;
  w.cfi.add(0x1000, 0x1100, saving(row_with_cfa(kRsp, 24), kRbx, -16));
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRbx, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {0, /*rbx*/ 0x7030, at(0x2050), 0, at(0x3050), 0,
                                 /*0x7030*/ 0, at(0x4050)});
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(kRbx, 0xbad);
  const Walk walk = w.walk(registers, stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x3050, 0x4050});
  CHECK(w.unwinder.stats().restarts == 1);

  // Nor does it take away what is remembered of the thread.
  WalkMemory memory;
  w.modules.insert({{0x100000}, {0x101000}, {}, 9, nullptr, nullptr});
  memory.use_map(w.modules.version());
  memory.learn({}, {WalkStep{}});
  const Walk again = w.unwinder.walk(registers, stack, w.modules, &memory);
  CHECK(again.is_complete());
  CHECK_FALSE(again.is_followed);
  CHECK(memory.steps().size() == 1);
}

TEST_CASE("a callee-saved register that no frame touched is still the leaf's") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRbx, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {at(0x3050), 0, /*0x7010*/ 0, at(0x4050)});
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(kRbx, 0x7010);
  CHECK(pcs(w.walk(registers, stack)) == Pcs{0x1010, 0x3050, 0x4050});
}

TEST_CASE("a register that calls may overwrite is unknown in the caller unless a row saves it") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x1100, 0x1200, saving(row_with_cfa(kRsp, 16), kR10, -16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kR10, 0));
  w.cfi.add(0x4000, 0x4100, root_row());
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(kR10, 0x7010);
  const Walk lost = w.walk(registers, FakeStack(0x7000, {at(0x3050), at(0x4050)}));
  CHECK(end_of(lost) == "unknown_register");
  CHECK(pcs(lost) == Pcs{0x1010, 0x3050});

  const FakeStack saved(0x7000, {/*r10*/ 0x7020, at(0x3050), 0, at(0x4050)});
  const Walk kept = w.walk(registers_at(at(0x1110), 0x7000, 0), saved);
  CHECK(end_of(kept) == "root");
  CHECK(pcs(kept) == Pcs{0x1110, 0x3050, 0x4050});
}

TEST_CASE("what assembly calls may leave it a register for its CFA, if that leads behind a call") {
  const bool is_behind_call = GENERATE(false, true);
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRax, 8));  // OpenSSL's AES-GCM
  w.cfi.add(0x4000, 0x4100, root_row());
  w.cfi.add(0x5000, 0x5100, row_with_cfa(kRsp, 8));
  if (is_behind_call) w.code.put(0x4050 - 7, {0x90, 0x90, 0xe8, 0, 0, 0, 0});
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(kRax, 0x7010);
  const Walk walk = w.walk(registers, FakeStack(0x7000, {at(0x3050), 0, at(0x4050)}));
  if (!is_behind_call) {
    CHECK(end_of(walk) == "unknown_register");
    return;
  }
  CHECK(pcs(walk) == Pcs{0x1010, 0x3050, 0x4050});
  CHECK(end_of(walk) == "root");
  CHECK(walk.frames[2].origin == FrameOrigin::Code);
  // Further out anything may have been done with it.
  registers.set(kRip, at(0x5010));
  registers.set(kRax, 0x7018);
  const FakeStack deeper(0x7000, {at(0x1050), at(0x3050), 0, at(0x4050)});
  CHECK(pcs(w.walk(registers, deeper)) == Pcs{0x5010, 0x1050, 0x3050});
}

TEST_CASE("a CFA in the red zone of a leaf has a copy in its frame that leads behind a call") {
  const bool is_behind_call = GENERATE(false, true);
  World w;
  const Expression word_below_sp{0x77, 0x78, 0x06, 0x23, 0x08};  // breg7 -8; deref; plus 8
  Row row = row_with_cfa(kRsp, 8);
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = word_below_sp;
  row.rules[kRbp] = {.kind = RuleKind::AtCfaOffset, .offset = -16};
  w.cfi.add(0x1000, 0x1100, row);
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRbp, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  if (is_behind_call) w.code.put(0x3050 - 7, {0x90, 0x90, 0xe8, 0, 0, 0, 0});
  const std::vector<uint64_t> words{
      7, 0x7000, /*data*/ 0x7020, /*copy*/ 0x7030, 5, /*rbp*/ 0x7040, at(0x3050), 0, 0, at(0x4050)};
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, words));
  if (!is_behind_call) {
    CHECK(end_of(walk) == "bad_memory");
    return;
  }
  CHECK(pcs(walk) == Pcs{0x1010, 0x3050, 0x4050});
  CHECK(walk.frames[1].origin == FrameOrigin::Code);
}

TEST_CASE("a leaf may have its return address in a register, popped from the stack (vfork)") {
  World w;
  Row vfork = row_with_cfa(kRsp, 0);  // as glibc describes it between pop %rdi and push %rdi
  vfork.rules[kRip] = {.kind = RuleKind::Register, .source_register = kRdi};
  w.cfi.add(0x1000, 0x1100, vfork);
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x4000, 0x4100, root_row());
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(kRdi, at(0x2050));
  const Walk walk = w.walk(registers, FakeStack(0x7000, {at(0x4050)}));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x4050});
  CHECK(w.unwinder.stats().restarts == 0);
  // Only where no call was made: a second such frame does not move on.
  registers.set(kRdi, at(0x1050));
  CHECK(end_of(w.walk(registers, FakeStack(0x7000, {at(0x4050)}))) == "unknown_register");
}

TEST_CASE("a CFA may come from any register of the leaf") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRax, 0));
  w.cfi.add(0x4000, 0x4100, root_row());
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(kRax, 0x7010);
  const Walk walk = w.walk(registers, FakeStack(0x7000, {0, at(0x4050)}));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x4050});
}

TEST_CASE("whole rows know every kind of rule for the frame pointer") {
  const Expression cfa_plus_8{0x23, 8};
  World w;
  Row by_offset = row_with_cfa(kRsp, 8);
  by_offset.rules[kRbp] = {.kind = RuleKind::ValCfaOffset, .offset = 8};
  w.cfi.add(0x1000, 0x1100, by_offset);
  Row by_expression = row_with_cfa(kRsp, 8);
  by_expression.rules[kRbp] = {.kind = RuleKind::ValExpression, .expression = cfa_plus_8};
  w.cfi.add(0x1100, 0x1200, by_expression);
  Row by_register = row_with_cfa(kRsp, 8);
  by_register.rules[kRbp] = {.kind = RuleKind::Register, .source_register = kRax};
  w.cfi.add(0x1200, 0x1300, by_register);
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRbp, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {at(0x3050), 0, /*0x7010*/ 0, at(0x4050)});
  for (const uint64_t leaf : {0x1010, 0x1110, 0x1210}) {
    Registers registers = registers_at(at(leaf), 0x7000, 0xbad);
    registers.set(kRax, 0x7010);
    CHECK(pcs(w.walk(registers, stack)) == Pcs{leaf, 0x3050, 0x4050});
  }
}

TEST_CASE("a rule that fails for a register that nobody needs does not end the walk") {
  World w;
  Row row = plt_row();
  row.rules[kRbx] = {.kind = RuleKind::AtCfaOffset, .offset = int64_t{1} << 40};
  w.cfi.add(0x1000, 0x1100, row);
  w.cfi.add(0x4000, 0x4100, root_row());
  CHECK(end_of(w.walk(registers_at(at(0x1000), 0x7000, 0), FakeStack(0x7000, {at(0x4050)}))) ==
        "root");
}

TEST_CASE("a leaf is not its own caller where its return address is said to be popped") {
  World w;
  Row row = row_with_cfa(kRsp, 0);
  row.rules[kRsp] = {.kind = RuleKind::ValCfaOffset, .offset = 8};
  w.cfi.add(0x1000, 0x1100, row);
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, {at(0x4050)}));
  CHECK(end_of(walk) == "bad_memory");
  CHECK(pcs(walk) == Pcs{0x1010});
}

TEST_CASE("a register of the leaf that is popped already keeps its value over all registers") {
  World w;
  w.cfi.add(0x1000, 0x1100, saving(row_with_cfa(kRsp, 8), kRbx, -16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRbx, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(kRbx, 0x7010);
  const FakeStack stack(0x7000, {at(0x3050), 0, /*0x7010*/ 0, at(0x4050)});
  CHECK(pcs(w.walk(registers, stack)) == Pcs{0x1010, 0x3050, 0x4050});
}
