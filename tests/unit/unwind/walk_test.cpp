// The fast walk over frames that compact rules describe.
#include "unwind/walk.h"

#include "support/catch2.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

TEST_CASE("a walk follows frames without frame pointers to the root") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 24));
  w.cfi.add(0x3000, 0x3100, root_row());
  const FakeStack stack(0x7000, {0, at(0x2050), 0, 0, at(0x3050)});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), stack);
  CHECK(end_of(walk) == "root");
  CHECK(walk.is_complete());
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x3050});
  CHECK(origins(walk) == std::vector{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::Cfi});
  CHECK(walk.frames[0].pc_is_exact);
  CHECK_FALSE(walk.frames[1].pc_is_exact);
  CHECK(walk.frames[2].image == kProgram);
}

TEST_CASE("a walk follows saved frame pointers through a function with alloca") {
  World w;
  w.cfi.add(0x1000, 0x1100, saving(row_with_cfa(kRsp, 16), kRbp, -16));  // pushed rbp
  w.cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRbp, 16), kRbp, -16));  // alloca
  w.cfi.add(0x3000, 0x3100, root_row());
  const FakeStack stack(0x7000, {0x7028, at(0x2050), 0xa110ca, 0xa110ca, 0xa110ca,
                                 /*0x7028*/ 0x1234, at(0x3050)});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0xbad), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x3050});
}

TEST_CASE("return addresses are looked up one byte before, exact pcs where they are") {
  World w;
  // A call that never returns is the caller's last instruction: 0x2100 is another function's first.
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x2100, 0x2200, RowStatus::Malformed);
  w.cfi.add(0x3000, 0x3100, root_row());
  const FakeStack stack(0x7000, {at(0x2100), 0, at(0x3050)});
  CHECK(pcs(w.walk(registers_at(at(0x1000), 0x7000, 0), stack)) == Pcs{0x1000, 0x2100, 0x3050});
}

TEST_CASE("a return address at the very end of a module still belongs to it") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x8f00, 0x9000, root_row());
  const Walk walk = w.walk(registers_at(at(0x1000), 0x7000, 0), FakeStack(0x7000, {at(0x9000)}));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1000, 0x9000});
}

TEST_CASE("the entry point without unwind information is a root") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x2000, 0x2100, RowStatus::Root);
  const Walk walk = w.walk(registers_at(at(0x1000), 0x7000, 0), FakeStack(0x7000, {at(0x2020)}));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1000, 0x2020});
}

TEST_CASE("recursion through one return address is not cut") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, root_row());
  std::vector<uint64_t> words;
  for (int level = 0; level < 100; ++level) words.insert(words.end(), {7, at(0x1050)});
  words.insert(words.end(), {7, at(0x3050)});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, words));
  CHECK(end_of(walk) == "root");
  REQUIRE(walk.frames.size() == 102);
  CHECK(walk.frames[50].pc == 0x1050);
  CHECK(walk.frames[100].pc == 0x1050);
}

TEST_CASE("a leaf that has popped its frame pointer already keeps it") {
  World w;
  // At the ret of an epilogue the row still says "at CFA - 16", below the stack pointer.
  w.cfi.add(0x1000, 0x1100, saving(row_with_cfa(kRsp, 8), kRbp, -16));
  w.cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  w.cfi.add(0x3000, 0x3100, root_row());
  const FakeStack stack(0x7000, {at(0x2050), 0, /*0x7010*/ 0, at(0x3050)});
  const Walk walk = w.walk(registers_at(at(0x1000), 0x7000, 0x7010), stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1000, 0x2050, 0x3050});
  CHECK(w.unwinder.stats().restarts == 0);
}

TEST_CASE("a frame pointer that cannot be read is missed only by a frame that needs it") {
  World w;
  w.cfi.add(0x1000, 0x1100, saving(row_with_cfa(kRsp, 8), kRbp, 0x100000));
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  const FakeStack stack(0x7000, {at(0x2050), 0, at(0x3050)});
  const Walk walk = w.walk(registers_at(at(0x1000), 0x7000, 0x7010), stack);
  CHECK(end_of(walk) == "unknown_register");
  CHECK(pcs(walk) == Pcs{0x1000, 0x2050, 0x3050});
}

TEST_CASE("a second walk asks the source for nothing") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  w.cfi.add(0x2000, 0x2100, root_row());
  const FakeStack stack(0x7000, {at(0x2050)});
  w.walk(registers_at(at(0x1000), 0x7000, 0), stack);
  const int lookups = w.cfi.lookups();
  CHECK(lookups == 2);
  const Walk walk = w.walk(registers_at(at(0x1000), 0x7000, 0), stack);
  CHECK(pcs(walk) == Pcs{0x1000, 0x2050});
  CHECK(w.cfi.lookups() == lookups);
  CHECK(w.unwinder.stats().cache_hits == 2);
  CHECK(w.unwinder.stats().cache_misses == 2);
}

TEST_CASE("answers without a row are remembered too") {
  World w;
  for (const RowStatus status :
       {RowStatus::NoCfi, RowStatus::Malformed, RowStatus::Unsupported, RowStatus::Root}) {
    const uint64_t pc = 0x1000 + 0x100 * static_cast<uint64_t>(status);
    w.cfi.add(pc, pc + 1, status);
    const WalkEnd end = w.walk(registers_at(at(pc), 0x7000, 0), FakeStack(0x7000, {0})).end;
    const int before = w.cfi.lookups();
    CHECK(w.walk(registers_at(at(pc), 0x7000, 0), FakeStack(0x7000, {0})).end == end);
    CHECK(w.cfi.lookups() == before);
  }
}

TEST_CASE("an image that two processes map at different addresses shares its rules") {
  World w;
  w.cfi.add(0x1000, 0x1100, root_row());
  w.walk(registers_at(at(0x1000), 0x7000, 0), FakeStack(0x7000, {0}));
  ModuleMap other;
  other.insert({{0x1000}, {0x9000}, {}, kProgram, &w.cfi});
  const FakeStack stack(0x7000, {0});
  const Walk walk = w.unwinder.walk(registers_at(0x1000, 0x7000, 0), stack, other);
  CHECK(pcs(walk) == Pcs{0x1000});
  CHECK(w.cfi.lookups() == 1);
}

TEST_CASE("a link address too large for the cache is walked all the same") {
  World w;
  const uint64_t far = uint64_t{1} << 45;
  w.cfi.add(far, far + 0x100, root_row());
  ModuleMap modules;
  modules.insert({{0x5000}, {0x6000}, {0x5000 - far}, kProgram, &w.cfi});
  const FakeStack stack(0x7000, {0});
  for (int i = 0; i < 2; ++i) {
    const Walk walk = w.unwinder.walk(registers_at(0x5010, 0x7000, 0), stack, modules);
    CHECK(end_of(walk) == "root");
    CHECK(pcs(walk) == Pcs{far + 0x10});
  }
  CHECK(w.cfi.lookups() == 2);
}
