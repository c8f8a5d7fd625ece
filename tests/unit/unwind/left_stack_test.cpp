// Where code changed the stack: what it was called by is found on the one that it left.
#include "left_stack_fixture.h"
#include "support/catch2.h"

#include <algorithm>
#include <optional>

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

struct Left : LeftStackWorld {
  std::optional<LeftStack> left() {
    const Walk walk = walk_of_sample();
    return left_stack_of(walk.frames, walk.left_frame_pointer, modules);
  }
  Pcs callers() {
    const uint64_t begin = kGoFramePointer - kLeftFrameReach_bytes;
    const auto [walk, is_of_callee_now] =
        unwinder.walk_left_stack(left().value(), FakeStack(begin, words), modules);
    is_of_callee = is_of_callee_now;
    CHECK(std::ranges::all_of(walk.frames, &WalkedFrame::is_live));
    CHECK(std::ranges::none_of(walk.frames, &WalkedFrame::pc_is_exact));
    return pcs(walk);
  }

  bool is_of_callee = false;  // of the last callers()
};

const Pcs kCallersOnGoStack{kCallsChanger, kCallsC, kGoRoot};

}  // namespace

TEST_CASE("a walk tells what it needs to know of a stack that code left") {
  Left w;
  CHECK(end_of(w.walk_of_sample()) == "other_stack");
  const LeftStack left = w.left().value();
  CHECK(left.image == kProgram);
  CHECK(left.changer_pc == kInChanger);
  CHECK(left.frame_pointer == kGoFramePointer);
  CHECK(left.callee.value == at(kCalledByGo));
}

TEST_CASE("Go's own code between the change of stacks and the C function is passed over") {
  Left w;  // asmcgocall_landingpad, since Go 1.22
  w.cfi.add(0x3200, 0x3300, row_with_cfa(kRsp, 8));
  const FakeStack stack(0x7000, {at(kInCalledByGo), 0, at(0x3250), at(kInChanger)});
  const Walk walk = w.walk(registers_at(at(kLeafInC), 0x7000, kGoFramePointer), stack);
  CHECK(pcs(walk) == Pcs{kLeafInC, kInCalledByGo, 0x3250, kInChanger});
  const auto left = left_stack_of(walk.frames, walk.left_frame_pointer, w.modules);
  CHECK(left.value().callee.value == at(kCalledByGo));
}

TEST_CASE("without a frame pointer or the C function's beginning nothing is known of the stack") {
  Left w;
  const Walk walk = w.walk_of_sample();
  CHECK_FALSE(left_stack_of(walk.frames, 0, w.modules));
  CHECK_FALSE(left_stack_of(walk.frames.last(1), kGoFramePointer, w.modules));
  CHECK_FALSE(left_stack_of({}, kGoFramePointer, w.modules));
  w.cfi.add(kCalledByGo, kCalledByGo + 0x100, row_with_cfa(kRsp, 16));
  CHECK_FALSE(w.left());
}

TEST_CASE("the callers are on the stack that was left, up to its root") {
  Left w;
  CHECK(w.callers() == kCallersOnGoStack);
  CHECK(w.is_of_callee);
  w.goroutine_calls(kCallsCElsewhere);
  CHECK(w.callers() == Pcs{kCallsChanger, kCallsCElsewhere, kGoRoot});
}

TEST_CASE("the call that left the stack may be its function's last instruction") {
  Left w;
  w.cfi.add(kCallsChanger, 0x5100, row_with_cfa(kRsp, 8));  // of the next function
  CHECK(w.callers() == kCallersOnGoStack);
}

TEST_CASE("a call that left the stack at the end of a mapping has no leaf's code to go on by") {
  LeftStackWorld w;
  ModuleMap modules;
  modules.insert({{kBias + 0x1000}, {kBias + 0x7000}, {kBias}, kProgram, &w.cfi, &w.code});
  w.cfi.add(0x6f00, 0x7000, saving(row_with_cfa(kRsp, 0x38), kRbp, -16));
  w.cfi.framed_end = 0x7000;
  w.code.put_call(0x7000, 0x3000);
  const uint64_t slot = kGoFramePointer - 0x30;
  w.goroutine(slot) = at(0x7000);
  w.goroutine(slot + 8) = at(kCalledByGo);
  w.goroutine(kGoFramePointer + 8) = 0xdead0000;  // where nothing is mapped
  const LeftStack left{.image = kProgram,
                       .changer_pc = kInChanger,
                       .frame_pointer = kGoFramePointer,
                       .callee = {at(kCalledByGo)}};
  const FakeStack stack(kGoFramePointer - kLeftFrameReach_bytes, w.words);
  const LeftStackWalk result = w.unwinder.walk_left_stack(left, stack, modules);
  CHECK(result.walk.frames.empty());
  CHECK(end_of(result.walk) == "unmapped_pc");
}

TEST_CASE("what changes stacks may keep a frame pointer of its own") {
  Left w;  // since Go 1.21: `push %rbp; mov %rsp, %rbp`
  const uint64_t callers_frame_pointer = kGoFramePointer + 0x38;
  w.words.assign(w.words.size() + 8, 0);
  w.goroutine(kGoFramePointer) = callers_frame_pointer;
  w.goroutine(kGoFramePointer + 8) = at(kCallsChanger);
  w.goroutine(kGoFramePointer + 16) = at(kCalledByGo);
  w.goroutine(callers_frame_pointer + 8) = at(kCallsC);
  w.goroutine(callers_frame_pointer + 24) = at(kGoRoot);
  CHECK(w.callers() == kCallersOnGoStack);
}

TEST_CASE("what Go called may be a function that jumps to the one that runs") {
  Left w;
  constexpr uint64_t kWrapper = 0x1080;
  w.code.put(kWrapper, std::vector<int>(48, 0x90));
  SECTION("near") { w.code.put(kWrapper + 2, {0xe9, 0x79, 0x0f, 0, 0}); }
  SECTION("short") {
    w.add_c(0x1020, row_with_cfa(kRsp, 16));
    w.code.put(kWrapper + 2, {0xeb, 0x9c});
    const FakeStack stack(0x7000, {at(0x1050), 0, at(kInChanger), 0});
    const Walk walk = w.walk(registers_at(at(kLeafInC), 0x7000, kGoFramePointer), stack);
    const auto left = left_stack_of(walk.frames, walk.left_frame_pointer, w.modules);
    w.goroutine_calls(kCallsC, kWrapper);
    const FakeStack now(kGoFramePointer - kLeftFrameReach_bytes, w.words);
    CHECK(w.unwinder.walk_left_stack(left.value(), now, w.modules).is_of_callee);
    return;
  }
  w.goroutine_calls(kCallsC, kWrapper);
  CHECK(w.callers() == kCallersOnGoStack);
  CHECK(w.is_of_callee);
}

TEST_CASE("the call by which a stack was left may be of another function") {
  Left w;
  w.goroutine_calls(kCallsC, 0x1000);
  SECTION("whose code cannot be read") {}
  SECTION("that jumps elsewhere") {
    w.code.put(0x1000, std::vector<int>(48, 0x90));
    w.code.put(0x1002, {0xe9, 0xf8, 0x0f, 0, 0});
  }
  CHECK(w.callers() == kCallersOnGoStack);
  CHECK_FALSE(w.is_of_callee);
}

TEST_CASE("a stack that is not as it was left has no callers") {
  Left w;
  SECTION("the call is of something else") { w.code.put_call(kCallsChanger, 0x6000); }
  SECTION("the call's frame is not the frame pointer's") {
    w.cfi.add(0x5000, 0x5100, row_with_cfa(kRsp, 0x40));
  }
  SECTION("it does not lead to a root") { w.goroutine(kGoFramePointer + 24) = at(0xa000); }
  SECTION("it ends too early") { w.words.resize(w.words.size() - 7); }
  SECTION("it cannot be read") { w.words.clear(); }
  CHECK(w.callers().empty());
}

TEST_CASE("the search for the call ends when it has cost as much as it may") {
  Left w;
  const LeftStack left = w.left().value();
  const auto look = [&](uint32_t work, int64_t cfa_offset) {
    Row row = saving(row_with_cfa(kRsp, cfa_offset), kRbp, -16);
    row.work = work;
    w.cfi.add(0x5000, 0x5100, row);
    const FakeStack now(kGoFramePointer - kLeftFrameReach_bytes, w.words);
    const int lookups = w.cfi.lookups();
    const bool is_found = !w.unwinder.walk_left_stack(left, now, w.modules).walk.frames.empty();
    return std::pair(is_found, w.cfi.lookups() - lookups);
  };
  SECTION("however many places look like it") {
    std::ranges::fill(w.words, at(kCallsChanger));
    CHECK(look(kMaxLeftStackWork / 4, 0x1000) == std::pair(false, 4));
  }
  SECTION("with the row that would be it") {
    CHECK(look(kMaxLeftStackWork, 0x38) == std::pair(false, 1));
    CHECK(look(kMaxLeftStackWork / 2, 0x38).first);
  }
}
