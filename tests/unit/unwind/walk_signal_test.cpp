// Signal frames: the interrupted pc is exact, all registers come back, and the stack may be
// another.
#include "support/catch2.h"
#include "unwind/walk.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

// As glibc describes __restore_rt: everything by expressions relative to the stack pointer, here at
// rsp + 0 (rsp), + 8 (rip), + 16 (rbp), + 24 (rbx).
const Expression kSavedRsp{0x77, 0, 0x06};
const Expression kAtRsp{0x77, 0}, kAtRip{0x77, 8}, kAtRbp{0x77, 16}, kAtRbx{0x77, 24};

Row restore_rt() {
  Row row;
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = kSavedRsp;
  row.return_address_register = kRip;
  row.is_signal_frame = true;
  row.rules[kRsp] = {.kind = RuleKind::AtExpression, .expression = kAtRsp};
  row.rules[kRip] = {.kind = RuleKind::AtExpression, .expression = kAtRip};
  row.rules[kRbp] = {.kind = RuleKind::AtExpression, .expression = kAtRbp};
  row.rules[kRbx] = {.kind = RuleKind::AtExpression, .expression = kAtRbx};
  return row;
}

// A handler at 0x1000 that returns into the signal frame at 0x2000; interrupted code from 0x3000.
struct SignalWorld : World {
  SignalWorld() {
    cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
    cfi.add(0x1fff, 0x2010, restore_rt());  // glibc's begins one byte early, for the minus one
    cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
    cfi.add(0x4000, 0x4100, root_row());
  }
};

}  // namespace

TEST_CASE("the pc that a signal interrupted is exact and looked up where it is") {
  SignalWorld w;
  // Interrupted at the first instruction of 0x3000: one byte before it there is nothing.
  const FakeStack stack(0x7000, {at(0x2000), /*0x7008*/ 0x7030, at(0x3000), 0, 0, 0, at(0x4050)});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2000, 0x3000, 0x4050});
  CHECK_FALSE(walk.frames[1].pc_is_exact);
  CHECK(walk.frames[2].pc_is_exact);
  CHECK_FALSE(walk.frames[3].pc_is_exact);
}

TEST_CASE("frame pointer and other registers come back from a signal frame") {
  SignalWorld w;
  w.cfi.add(0x5000, 0x5100, row_with_cfa(kRbp, 16));
  w.cfi.add(0x6000, 0x6100, row_with_cfa(kRbx, 16));
  const FakeStack stack(0x7000,
                        {at(0x2000), /*0x7008*/ 0x7028, at(0x5010), /*rbp*/ 0x7028,
                         /*rbx*/ 0x7038, /*0x7028*/ 0, at(0x6050), /*0x7038*/ 0, at(0x4050)});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0xbad), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2000, 0x5010, 0x6050, 0x4050});
  CHECK(w.unwinder.stats().restarts == 1);  // rbx was missing in the fast walk
}

TEST_CASE("a signal frame may lead down to another stack that was copied as well") {
  SignalWorld w;
  // The handler's stack lies above the interrupted one.
  const FakeStack stack(0x7000, {at(0x4050), 0, at(0x2000), /*0x7018*/ 0x7000, at(0x3010), 0, 0});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7010, 0), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2000, 0x3010, 0x4050});
}

TEST_CASE("a signal frame that leads to a stack that was not copied: OtherStack behind its frame") {
  SignalWorld w;
  for (const uint64_t other_stack :
       {uint64_t{0x100}, uint64_t{0x7fff00000000}, uint64_t{0x20000}}) {
    const FakeStack stack(0x7000, {at(0x2000), other_stack, at(0x3010), 0, 0});
    const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), stack);
    CHECK(end_of(walk) == "other_stack");
    CHECK(pcs(walk) == Pcs{0x1010, 0x2000, 0x3010});
  }
}

TEST_CASE("a signal frame on the same stack, which was cut: StackTruncated") {
  SignalWorld w;
  const FakeStack stack(0x7000, {at(0x2000), /*rsp*/ 0x7100, at(0x3010), 0, 0});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), stack);
  CHECK(end_of(walk) == "stack_truncated");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2000, 0x3010});
}

TEST_CASE("the leaf may be the signal trampoline itself") {
  SignalWorld w;
  const FakeStack stack(0x7000, {/*0x7000*/ 0x7020, at(0x3010), 0, 0, at(0x4050)});
  const Walk walk = w.walk(registers_at(at(0x2000), 0x7000, 0), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x2000, 0x3010, 0x4050});
}

TEST_CASE("signal frames that lead into each other end after a few changes of the stack") {
  SignalWorld w;
  // The frame restores its own stack pointer and pc, for ever.
  const FakeStack stack(0x7000, {/*0x7000*/ 0x7000, at(0x2001), 0, 0});
  const Walk walk = w.walk(registers_at(at(0x2001), 0x7000, 0), stack);
  CHECK(end_of(walk) == "no_progress");
  CHECK(walk.frames.size() == 9);  // the leaf and eight changes
}

TEST_CASE("an interrupted leaf reads what it popped from below its stack pointer") {
  SignalWorld w;
  w.cfi.add(0x5000, 0x5100, saving(row_with_cfa(kRsp, 8), kRbp, -16));
  w.cfi.add(0x6000, 0x6100, row_with_cfa(kRbp, 16));
  const FakeStack stack(0x7000, {at(0x2000), /*0x7008*/ 0x7030, at(0x5010), /*rbp*/ 0xbad, 0,
                                 /*0x7028: popped*/ 0x7038, /*0x7030*/ at(0x6050),
                                 /*0x7038*/ 0, at(0x4050)});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2000, 0x5010, 0x6050, 0x4050});
}

TEST_CASE("a signal handler without unwind tables returns to no call") {
  SignalWorld w;
  w.code.put(0x5010, {0xc3});
  const FakeStack stack(0x7000, {at(0x2000), /*0x7008*/ 0x7030, at(0x3000), 0, 0, 0, at(0x4050)});
  // A frame pointer that the handler leaves alone leads past what was interrupted.
  const uint64_t fp = GENERATE(uint64_t{0}, uint64_t{0x7028});
  const Walk walk = w.walk(registers_at(at(0x5010), 0x7000, fp), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x5010, 0x2000, 0x3000, 0x4050});
}
