// Unwinders return to landing pads: to where no call stands before.
#include "support/catch2.h"
#include "unwind/walk.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

// The unwinder's last instruction is at 0x2010; it returns to 0x3040, whose caller is 0x4050.
struct LandingWorld : World {
  LandingWorld() {
    cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 8));
    cfi.add(0x3040, 0x3100, row_with_cfa(kRsp, 24));
    cfi.add(0x4000, 0x4100, root_row());
  }
  void put_return() { code.put(0x3039, {0x90, 0x90, 0x90, 0x90, 0x90, 0x5b, 0xc3}); }
  Walk land() {
    return walk(registers_at(at(0x2010), 0x7000, 0),
                FakeStack(0x7000, {at(0x3040), /*0x7008*/ 5, 5, at(0x4050), 0}));
  }
};

}  // namespace

TEST_CASE("a landing pad has the row that begins there, not that of the block before") {
  LandingWorld w;
  w.cfi.add(0x3000, 0x3040, row_with_cfa(kRsp, 8));
  w.put_return();
  for (int i = 0; i < 2; ++i) {  // and so it is remembered
    const Walk walk = w.land();
    CHECK(end_of(walk) == "root");
    CHECK(pcs(walk) == Pcs{0x2010, 0x3040, 0x4050});
    CHECK(walk.frames[1].pc_is_exact);
    CHECK_FALSE(walk.frames[2].pc_is_exact);
  }
}

TEST_CASE("what a call returns to has the row of the call, also where a row ends") {
  LandingWorld w;
  w.cfi.add(0x3000, 0x3040, row_with_cfa(kRsp, 16));
  w.code.put_call(0x3040, 0x2000);
  const Walk walk = w.walk(registers_at(at(0x2010), 0x7000, 0),
                           FakeStack(0x7000, {at(0x3040), 0, at(0x4050), 0, 0}));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x2010, 0x3040, 0x4050});
  CHECK_FALSE(walk.frames[1].pc_is_exact);
}

TEST_CASE("code that cannot be read is taken for a call") {
  LandingWorld w;
  w.cfi.add(0x3000, 0x3040, row_with_cfa(kRsp, 8));
  const Walk walk = w.land();
  CHECK(end_of(walk) == "unmapped_pc");
  CHECK(pcs(walk) == Pcs{0x2010, 0x3040});
  CHECK_FALSE(walk.frames[1].pc_is_exact);
}

TEST_CASE("where a function begins is no landing pad, but the first one of its stack") {
  LandingWorld w;
  w.cfi.add(0x3000, 0x3040, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3040, 0x3100, row_with_cfa(kRsp, 8));
  w.put_return();
  const Walk walk = w.walk(registers_at(at(0x2010), 0x7000, 0),
                           FakeStack(0x7000, {at(0x3040), 5, at(0x4050), 0}));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x2010, 0x3040});
  CHECK(walk.frames[1].pc_is_exact);
}

TEST_CASE("a frame of the kernel's is no landing pad, but what a handler returned to") {
  LandingWorld w;
  w.cfi.add(0x3000, 0x3040, row_with_cfa(kRsp, 8));
  Row of_signal = row_with_cfa(kRsp, 24);
  of_signal.is_signal_frame = true;
  w.cfi.add(0x3040, 0x3100, of_signal);
  SECTION("behind a function's end") {
    w.put_return();
    for (int i = 0; i < 2; ++i) {  // and so it is remembered
      const Walk walk = w.land();
      CHECK(end_of(walk) == "root");
      CHECK(pcs(walk) == Pcs{0x2010, 0x3040, 0x4050});
      CHECK(walk.frames[1].pc_is_exact);  // its name is not that of the function before
      CHECK(walk.frames[2].pc_is_exact);
    }
  }
  SECTION("not behind a call that does not return") {
    w.code.put_call(0x3040, 0x2000);
    CHECK(end_of(w.land()) == "unmapped_pc");
  }
  SECTION("from code without rows") {
    w.put_return();
    w.code.put(0x6000, {0xc3});
    const Walk walk = w.walk(registers_at(at(0x6000), 0x7000, 0),
                             FakeStack(0x7000, {at(0x3040), 5, 5, at(0x4050), 0}));
    CHECK(end_of(walk) == "root");
    CHECK(pcs(walk) == Pcs{0x6000, 0x3040, 0x4050});
  }
}

TEST_CASE("that a walk had no work left to look for a landing pad is not remembered") {
  LandingWorld w;
  w.put_return();
  // Its rows take all of the work but a little.
  w.cfi.add(0x8000, 0x8100, row_with_cfa(kRsp, 8));
  const uint32_t rows_work = GENERATE(kMaxWork - 1, kMaxWork - 32, kMaxWork - 63);
  Row dear = row_with_cfa(kRsp, 8);
  dear.work = rows_work;
  w.cfi.add(0x8000, 0x8100, dear);
  w.walk(registers_at(at(0x8010), 0x7000, 0), FakeStack(0x7000, {at(0x3040), 5, 5, at(0x4050), 0}));
  const Walk walk = w.land();
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x2010, 0x3040, 0x4050});
}

TEST_CASE("a landing pad at the beginning of a function's part, behind code without rows") {
  LandingWorld w;
  w.put_return();
  const Walk walk = w.land();
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x2010, 0x3040, 0x4050});
  CHECK(walk.frames[1].pc_is_exact);
}

TEST_CASE("a landing pad in a walk that needs all registers") {
  LandingWorld w;
  w.put_return();
  w.cfi.add(0x4000, 0x4100, row_with_cfa(kRbx, 16));
  w.cfi.add(0x5000, 0x5100, root_row());
  Row saves = row_with_cfa(kRsp, 24);
  saves.rules[kRbx] = {.kind = RuleKind::AtCfaOffset, .offset = -16};
  w.cfi.add(0x3040, 0x3100, saves);
  const Walk walk = w.walk(registers_at(at(0x2010), 0x7000, 0),
                           FakeStack(0x7000, {at(0x3040), 0, /*rbx*/ 0x7020, at(0x4050),
                                              /*0x7020*/ 0, at(0x5050), 0}));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x2010, 0x3040, 0x4050, 0x5050});
  CHECK(walk.frames[1].pc_is_exact);
}
