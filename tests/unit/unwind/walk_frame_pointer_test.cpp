// Code without unwind information: frame pointers, believed only where they make sense.
#include "support/catch2.h"
#include "unwind/walk.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

TEST_CASE("frame pointers lead through an image without CFI, and CFI takes over behind it") {
  World w;
  w.cfi.add(0x3000, 0x3100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {0, /*0x7008*/ 0x7020, at(0x10050), 0, /*0x7020*/ 0x7038,
                                 at(0x3050), 0, /*0x7038*/ 0, at(0x4050)});
  const Walk walk = w.walk(registers_at(at(0x10010), 0x7000, 0x7008), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x10010, 0x10050, 0x3050, 0x4050});
  CHECK(origins(walk) == std::vector{FrameOrigin::Leaf, FrameOrigin::FramePointer,
                                     FrameOrigin::FramePointer, FrameOrigin::Cfi});
  CHECK(walk.frames[1].image == kLibraryWithoutCfi);
}

TEST_CASE("frames of anonymous code carry their runtime address") {
  World w;
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {/*0x7000*/ 0, at(0x4050)});
  const Walk walk = w.walk(registers_at(at(0x20010), 0x7000, 0x7000), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{at(0x20010), 0x4050});
  CHECK(walk.frames[0].image == kNoImage);
  CHECK(w.unwinder.stats().cache_misses == 1);  // anonymous code is not looked up
}

TEST_CASE("an address that no row covers, in an image that has others, uses the frame pointer") {
  World w;
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {/*0x7000*/ 0, at(0x4050)});
  CHECK(pcs(w.walk(registers_at(at(0x5000), 0x7000, 0x7000), stack)) == Pcs{0x5000, 0x4050});
}

TEST_CASE("a frame pointer that is none ends the walk: NoUnwindInfo") {
  World w;
  const FakeStack stack(0x7000, {0x7010, at(0x1050), 0x7020, 0x1234});
  const auto end_with = [&](uint64_t fp) {
    const Walk walk = w.walk(registers_at(at(0x10010), 0x7000, fp), stack);
    CHECK(pcs(walk) == Pcs{0x10010});
    return end_of(walk);
  };
  CHECK(end_with(0) == "no_unwind_info");               // the end of a chain
  CHECK(end_with(0x6ff8) == "no_unwind_info");          // below the stack pointer
  CHECK(end_with(0x7004) == "no_unwind_info");          // unaligned
  CHECK(end_with(0x7010) == "no_unwind_info");          // leads to no code
  CHECK(end_with(0x55aa00000000) == "no_unwind_info");  // not on the stack
  CHECK(end_with(UINT64_MAX - 7) == "no_unwind_info");
}

TEST_CASE("a caller without unwind information whose frame pointer is 0 is the thread's root") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x1100, 0x1200, saving(row_with_cfa(kRsp, 16), kRbp, -16));
  const Walk same = w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, {at(0x8050)}));
  CHECK(end_of(same) == "root");
  CHECK(pcs(same) == Pcs{0x1010, 0x8050});
  const FakeStack saved(0x7000, {0, at(0x8050)});
  CHECK(end_of(w.walk(registers_at(at(0x1110), 0x7000, 0x55), saved)) == "root");
  const FakeStack chain(0x7000, {/*0x7000*/ 0, at(0x20050)});  // JIT code
  CHECK(end_of(w.walk(registers_at(at(0x10010), 0x7000, 0x7000), chain)) == "root");
}

TEST_CASE("a frame pointer of 0 that is in no frame record is no root in memory without a file") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  const FakeStack stack(0x7000, {at(0x20050)});  // JIT code, which may use the register as any
  const Registers leaf = registers_at(at(0x1010), 0x7000, 0);
  CHECK(end_of(w.walk(leaf, stack)) == "no_unwind_info");
  w.memory.put(kBias + 0x20050, {0x75, 0x00});  // jne, and no more: LuaJIT's traces have no ret
  CHECK(end_of(w.walk(leaf, stack)) == "no_unwind_info");
}

TEST_CASE("a frame pointer of 0 is no root in an image that could not be read") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, {at(0x10050)}));
  CHECK(end_of(walk) == "no_unwind_info");
  CHECK(pcs(walk) == Pcs{0x1010, 0x10050});
}

TEST_CASE("a frame pointer that is not known is no mark of a root") {
  World w;
  Row row = row_with_cfa(kRsp, 8);
  row.rules[kRbp] = {.kind = RuleKind::Undefined};
  w.cfi.add(0x1000, 0x1100, row);
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, {at(0x10050)}));
  CHECK(end_of(walk) == "unknown_register");
}

TEST_CASE("a frame pointer just above the copied bytes: StackTruncated") {
  World w;
  const FakeStack stack(0x7000, {0, 0});
  CHECK(end_of(w.walk(registers_at(at(0x10010), 0x7000, 0x7100), stack)) == "stack_truncated");
  CHECK(end_of(w.walk(registers_at(at(0x10010), 0x7000, 0x7008), stack)) == "stack_truncated");
  CHECK(end_of(w.walk(registers_at(at(0x10010), 0x7000, 0x7000 + 0x10000), stack)) ==
        "stack_truncated");
}

TEST_CASE("a frame pointer to another stack nearby is no sign of a cut: NoUnwindInfo") {
  World w;
  const FakeStack stack(0x7000, {0, 0});
  CHECK(end_of(w.walk(registers_at(at(0x10010), 0x7000, 0x7000 + 0x10008), stack)) ==
        "no_unwind_info");
}

TEST_CASE("a chain of frame pointers that goes back ends") {
  World w;
  const FakeStack stack(0x7000, {/*0x7000*/ 0x7000, at(0x10050)});
  const Walk walk = w.walk(registers_at(at(0x10010), 0x7000, 0x7000), stack);
  CHECK(end_of(walk) == "no_unwind_info");
  CHECK(pcs(walk) == Pcs{0x10010, 0x10050});
}

TEST_CASE("registers saved by code without unwind information are not guessed") {
  World w;
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRbx, 16));
  Registers registers = registers_at(at(0x10010), 0x7000, 0x7000);
  registers.set(kRbx, 0x7000);
  const Walk walk = w.walk(registers, FakeStack(0x7000, {0, at(0x3050), 0, at(0x3050)}));
  CHECK(end_of(walk) == "unknown_register");
  CHECK(pcs(walk) == Pcs{0x10010, 0x3050});
}
