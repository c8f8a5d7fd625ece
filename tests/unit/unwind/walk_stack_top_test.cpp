// The leaf in code without unwind information that has no frame: its return address is at the stack
// pointer, and is believed where it lies behind a call.
#include "support/catch2.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;
using Origins = std::vector<FrameOrigin>;

namespace {

constexpr uint64_t kLeaf = 0x5010;  // no row covers it
constexpr uint64_t kCaller = 0x2050;
constexpr uint64_t kOuter = 0x3050;

// kCaller keeps a frame pointer; the leaf's, which is still that, leads past it to kOuter.
struct FramelessLeaf : World {
  FramelessLeaf() {
    cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
    cfi.add(0x3000, 0x3100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
    cfi.add(0x4000, 0x4100, root_row());
  }

  Pcs walk_at(uint64_t pc) {
    const uint64_t sp = 0x7008;
    const FakeStack stack(
        sp, {at(kCaller), 0, /*0x7018*/ 0x7030, at(kOuter), 0, /*0x7030*/ 0, at(0x4050)});
    const Walk walk = World::walk(registers_at(at(pc), sp, 0x7018), stack);
    CHECK(end_of(walk) == "root");
    found_origins = origins(walk);
    return pcs(walk);
  }

  Origins found_origins;
};

const Pcs kWhole{kLeaf, kCaller, kOuter, 0x4050};
const Pcs kWithoutCaller{kLeaf, kOuter, 0x4050};

}  // namespace

TEST_CASE("a word behind a call of the leaf's own code is its return address") {
  FramelessLeaf w;
  w.code.put_call(kCaller, 0x5000);
  CHECK(w.walk_at(kLeaf) == kWhole);
  CHECK(w.found_origins ==
        Origins{FrameOrigin::Leaf, FrameOrigin::StackTop, FrameOrigin::Cfi, FrameOrigin::Cfi});
}

TEST_CASE("a word behind no call, or whose code is not at hand, is not believed") {
  FramelessLeaf w;
  CHECK(w.walk_at(kLeaf) == kWithoutCaller);
  FramelessLeaf other;
  other.code.put(kCaller - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
  CHECK(other.walk_at(kLeaf) == kWithoutCaller);
  CHECK(other.found_origins ==
        Origins{FrameOrigin::Leaf, FrameOrigin::FramePointer, FrameOrigin::Cfi});
}

TEST_CASE("a call by pointer, or of other code, is believed where the leaf has no frame") {
  FramelessLeaf by_pointer;
  by_pointer.code.put(kCaller - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});
  CHECK(by_pointer.walk_at(kLeaf) == kWhole);
  FramelessLeaf of_other;
  of_other.code.put_call(kCaller, 0x3000);
  CHECK(of_other.walk_at(kLeaf) == kWhole);
}

TEST_CASE("a leaf that has a frame of its own goes by it") {
  FramelessLeaf w;
  w.code.put(kCaller - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});  // a leftover
  w.code.put_call(kOuter, 0x5000);
  CHECK(w.walk_at(kLeaf) == kWithoutCaller);
}

TEST_CASE("a call by pointer is not believed where no function begins with such a stack pointer") {
  World w;
  w.cfi.add(0x3000, 0x3100, root_row());
  w.code.put(kCaller - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});
  const FakeStack stack(0x7000, {at(kCaller), 0, /*0x7010*/ 0x7030, at(kOuter)});
  CHECK(pcs(w.walk(registers_at(at(kLeaf), 0x7000, 0x7010), stack)) == Pcs{kLeaf, kOuter});
}

TEST_CASE("bytes that read as a direct call to no code are no call") {
  FramelessLeaf w;
  w.code.put_call(kCaller, 0x800000);
  CHECK(w.walk_at(kLeaf) == kWithoutCaller);
}

TEST_CASE("only the leaf may be without a frame") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  w.code.put_call(kCaller, 0x5000);
  // 0x2010 was called from 0x5010, at whose stack pointer is a leftover.
  const FakeStack stack(0x7000,
                        {0, at(kLeaf), /*0x7010*/ at(kCaller), 0, /*0x7020*/ 0, at(0x4050)});
  const Walk walk = w.walk(registers_at(at(0x2010), 0x7000, 0x7020), stack);
  CHECK(pcs(walk) == Pcs{0x2010, kLeaf, 0x4050});
}

TEST_CASE("registers that calls preserve stay known over a leaf without a frame") {
  FramelessLeaf w;
  w.code.put_call(kCaller, 0x5000);
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRbx, 16));
  const uint64_t sp = 0x7008;
  const FakeStack stack(sp, {at(kCaller), 0, /*0x7018*/ 0, at(0x4050)});
  Registers registers = registers_at(at(kLeaf), sp, 0);
  registers.set(kRbx, 0x7018);
  CHECK(pcs(w.World::walk(registers, stack)) == Pcs{kLeaf, kCaller, 0x4050});
  registers = registers_at(at(kLeaf), sp, 0);
  registers.set(kRdi, 0x7018);
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRdi, 16));
  CHECK(end_of(w.World::walk(registers, stack)) == "unknown_register");
}

TEST_CASE("a function to which a return leads that no call made is the root") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
  const FakeStack stack(0x7000, {0, at(0x3000), 0, 0, 0, 0});
  const auto registers = registers_at(at(0x2010), 0x7000, 0x7018);
  const auto walk = [&] { return w.walk(registers, stack); };
  CHECK(end_of(walk()) == "no_unwind_info");  // what stands before it is not known
  World known;
  known.cfi = w.cfi;
  known.code.put(0x2ff9, {0x66, 0x0f, 0x1f, 0x44, 0, 0, 0xf4});
  const Walk whole = known.walk(registers, stack);
  CHECK(end_of(whole) == "root");
  CHECK(pcs(whole) == Pcs{0x2010, 0x3000});
}

TEST_CASE("a pointer to a function where a frame pointer leads is no root") {
  World w;
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
  w.code.put(0x2ff9, {0x66, 0x0f, 0x1f, 0x44, 0, 0, 0xf4});  // nothing calls from there
  const FakeStack stack(0x7000, {0, 0, /*0x7010*/ 5, at(0x3000), 0, 0});
  const Walk walk = w.walk(registers_at(at(kLeaf), 0x7000, 0x7010), stack);
  CHECK(end_of(walk) == "no_unwind_info");
  CHECK(pcs(walk) == Pcs{kLeaf, 0x3000});
}

TEST_CASE("behind a call that does not return, another function may begin") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
  w.code.put_call(0x3000, 0x2000);
  const FakeStack stack(0x7000, {0, at(0x3000), 0, 0, 0, 0});
  CHECK(end_of(w.walk(registers_at(at(0x2010), 0x7000, 1), stack)) == "no_unwind_info");
}
