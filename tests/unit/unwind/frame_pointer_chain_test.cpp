// Code that changes the stack, as Go's runtime does: the caller is found in the chain of frame
// pointers that the kernel followed when it took the sample.
#include "support/catch2.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;
using Origins = std::vector<FrameOrigin>;

namespace {

constexpr uint64_t kLeafInChain = 0x1010;
constexpr uint64_t kInnerInChain = 0x2050;   // called the leaf
constexpr uint64_t kSwitchInChain = 0x3050;  // called kInnerInChain on another stack
constexpr uint64_t kCallerInChain = 0x5050;
constexpr uint64_t kOuterInChain = 0x6050;
constexpr uint64_t kRootInChain = 0x4001;  // goes behind the first byte of what nothing calls

struct OtherStacks : World {
  OtherStacks() {
    cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
    cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
    cfi.add(0x3000, 0x3100, RowStatus::OtherStack);
    cfi.add(0x4000, 0x4100, RowStatus::Root);
    cfi.framed_begin = 0x3000;
    cfi.framed_end = 0x7000;
    for (const uint64_t pc : {kCallerInChain, kOuterInChain}) code.put_call(pc, 0x3000);
    chain = {at(kLeafInChain),   at(kInnerInChain), at(kSwitchInChain),
             at(kCallerInChain), at(kOuterInChain), at(kRootInChain)};
  }

  Walk walk() {
    const FakeStack stack(0x7000, {at(kInnerInChain), 0, at(kSwitchInChain), at(0x2070)});
    return World::walk(registers_at(at(kLeafInChain), 0x7000, 0x9000), stack);
  }
  Walk follow() { return unwinder.follow(walk(), chain, modules); }

  std::vector<uint64_t> chain;
};

const Pcs kWalkedPart{kLeafInChain, kInnerInChain, kSwitchInChain};
const Pcs kWholeStack{kLeafInChain,   kInnerInChain, kSwitchInChain,
                      kCallerInChain, kOuterInChain, kRootInChain};

}  // namespace

TEST_CASE("a walk ends where the code changed the stack") {
  OtherStacks w;
  for (int i = 0; i < 2; ++i) {  // by a new rule, and by the cached one
    CHECK(end_of(w.walk()) == "other_stack");
    CHECK(pcs(w.walk()) == kWalkedPart);
  }
}

TEST_CASE("the chain leads on to the root") {
  OtherStacks w;
  for (int i = 0; i < 2; ++i) {
    const Walk walk = w.follow();
    CHECK(end_of(walk) == "root");
    CHECK(pcs(walk) == kWholeStack);
    CHECK(origins(walk) == Origins{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::Cfi,
                                   FrameOrigin::KernelChain, FrameOrigin::KernelChain,
                                   FrameOrigin::KernelChain});
    CHECK_FALSE(walk.is_followed);
  }
}

TEST_CASE("code without a frame of its own is not in the chain") {
  OtherStacks w;
  w.chain = {at(kLeafInChain), at(kSwitchInChain), at(kCallerInChain), at(kOuterInChain),
             at(kRootInChain)};
  CHECK(pcs(w.follow()) == kWholeStack);
  w.chain = {at(kLeafInChain), at(kCallerInChain), at(kOuterInChain), at(kRootInChain)};
  CHECK(pcs(w.follow()) == kWholeStack);
}

TEST_CASE("what is in the chain but was not walked, is not taken from among the walked frames") {
  OtherStacks w;
  w.chain = {at(kLeafInChain),   at(kLeafInChain),   at(kInnerInChain), at(0x2070),
             at(kSwitchInChain), at(kCallerInChain), at(kRootInChain)};
  CHECK(pcs(w.follow()) ==
        Pcs{kLeafInChain, kInnerInChain, kSwitchInChain, kCallerInChain, kRootInChain});
}

TEST_CASE("a chain is believed only in code that surely has frame pointers") {
  for (const uint64_t begin : {kSwitchInChain, kCallerInChain, kOuterInChain}) {
    OtherStacks w;
    w.cfi.framed_begin = begin;  // the last byte of the call is without
    CHECK(end_of(w.follow()) == "other_stack");
  }
  OtherStacks w;
  w.cfi.framed_end = kRootInChain - 1;
  CHECK(end_of(w.follow()) == "other_stack");
  // Nor does it matter what is remembered of the root.
  w.cfi.framed_end = 0x7000;
  CHECK(end_of(w.follow()) == "root");
  w.cfi.framed_end = kRootInChain - 1;
  CHECK(end_of(w.follow()) == "other_stack");
}

TEST_CASE("a chain that cannot be believed changes nothing") {
  OtherStacks w;
  const auto is_refused = [&](std::vector<uint64_t> chain) {
    w.chain = std::move(chain);
    const Walk walk = w.follow();
    return end_of(walk) == "other_stack" && pcs(walk) == kWalkedPart;
  };
  CHECK(is_refused({}));
  CHECK(is_refused({at(kLeafInChain)}));
  CHECK(is_refused({at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain)}));
  // Of another moment.
  CHECK(is_refused({at(kLeafInChain) + 1, at(kInnerInChain), at(kSwitchInChain), at(kCallerInChain),
                    at(kOuterInChain), at(kRootInChain)}));
  // It ends before the root.
  CHECK(is_refused({at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain), at(kCallerInChain),
                    at(kOuterInChain)}));
  // Of what it leads to, something is no return address, no code, or of another image.
  CHECK(is_refused({at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain), at(kCallerInChain) + 1,
                    at(kRootInChain)}));
  CHECK(is_refused(
      {at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain), 0x1234, at(kRootInChain)}));
  CHECK(is_refused({at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain), 0, at(kRootInChain)}));
  CHECK(is_refused(
      {at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain), at(0x10050), at(kRootInChain)}));
  CHECK(
      is_refused({at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain), at(kCallerInChain), 0}));
  CHECK(is_refused(
      {at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain), at(kCallerInChain), UINT64_MAX}));
}

TEST_CASE("only a walk that ended at another stack is led on") {
  OtherStacks w;
  w.cfi.add(0x3000, 0x3100, RowStatus::Unsupported);
  CHECK(end_of(w.follow()) == "unsupported");
  CHECK(pcs(w.follow()) == kWalkedPart);
}

TEST_CASE("a chain longer than there is room for frames is not taken") {
  OtherStacks w;
  w.chain.pop_back();
  w.chain.resize(kMaxFrames, at(kOuterInChain));
  w.chain.push_back(at(kRootInChain));
  CHECK(end_of(w.follow()) == "other_stack");
  w.chain.resize(kMaxFrames - 1);
  w.chain.push_back(at(kRootInChain));
  const Walk walk = w.follow();
  CHECK(end_of(walk) == "root");
  CHECK(walk.frames.size() == kMaxFrames);
}

TEST_CASE("behind a signal frame whose stack was not copied the chain leads on as well") {
  OtherStacks w;
  Row trampoline = row_with_cfa(kRsp, 16);
  trampoline.is_signal_frame = true;
  trampoline.rules[kRsp] = {.kind = RuleKind::AtCfaOffset, .offset = -16};
  w.cfi.add(0x3000, 0x3100, trampoline);
  w.cfi.add(0x5000, 0x5100, row_with_cfa(kRsp, 16));
  w.chain = {at(kLeafInChain), at(kInnerInChain), at(kSwitchInChain), at(kOuterInChain),
             at(kRootInChain)};
  const FakeStack stack(0x7000,
                        {at(kInnerInChain), 0, at(kSwitchInChain), /*sp*/ 0x100, at(0x5020)});
  const Walk walk = w.World::walk(registers_at(at(kLeafInChain), 0x7000, 0x9000), stack);
  REQUIRE(end_of(walk) == "other_stack");
  CHECK(pcs(w.unwinder.follow(walk, w.chain, w.modules)) ==
        Pcs{kLeafInChain, kInnerInChain, kSwitchInChain, 0x5020, kOuterInChain, kRootInChain});
}

TEST_CASE("a chain whose root takes longer to know than a walk may take is not taken") {
  OtherStacks w;
  w.cfi.add(0x4000, 0x4100, RowStatus::Root, kMaxWork);
  CHECK(end_of(w.follow()) == "other_stack");
  w.cfi.add(0x4000, 0x4100, RowStatus::Root, kMaxWork / 2);
  CHECK(end_of(w.follow()) == "root");
}
