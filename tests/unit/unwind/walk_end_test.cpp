// Why walks end, other than at the root. The frames found so far are always kept.
#include "support/catch2.h"
#include "unwind/walk.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

// Walks from 0x1010, whose frame has its CFA at rsp + `cfa_offset`.
struct Outcome {
  std::string end;
  Pcs pcs;
  bool operator==(const Outcome&) const = default;
};

Outcome walk_one(int64_t cfa_offset, std::vector<uint64_t> words) {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, cfa_offset));
  const Walk walk =
      w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, std::move(words)));
  return {end_of(walk), test::pcs(walk)};
}

}  // namespace

TEST_CASE("a word beyond the copied bytes: StackTruncated") {
  CHECK(walk_one(24, {0, 0}) == Outcome{"stack_truncated", {0x1010}});
  CHECK(walk_one(0x100000, {0, 0}) == Outcome{"stack_truncated", {0x1010}});
}

TEST_CASE("a word behind the end of the stack's memory, all of which was copied: BadMemory") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 24));
  const std::array<std::byte, 16> bytes{};
  const StackSnapshot whole({0x7000}, bytes, StackSnapshot::Behind::Nothing);
  CHECK(end_of(w.unwinder.walk(registers_at(at(0x1010), 0x7000, 0), whole, w.modules)) ==
        "bad_memory");
  CHECK(end_of(w.unwinder.walk(registers_at(at(0x10010), 0x7000, 0x7100), whole, w.modules)) ==
        "no_unwind_info");
}

TEST_CASE("a word that only begins within the copied bytes: StackTruncated") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 16));
  const std::array<std::byte, 12> bytes{};
  const Walk walk =
      w.unwinder.walk(registers_at(at(0x1010), 0x7000, 0), {{0x7000}, bytes}, w.modules);
  CHECK(end_of(walk) == "stack_truncated");
}

TEST_CASE("a CFA far away from the stack: BadMemory") {
  CHECK(walk_one(int64_t{1} << 40, {0, 0}) == Outcome{"bad_memory", {0x1010}});
}

TEST_CASE("a stack pointer outside the snapshot: BadMemory") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 16));
  const Walk walk = w.walk(registers_at(at(0x1010), 0x100, 0), FakeStack(0x7000, {0, 0}));
  CHECK(end_of(walk) == "bad_memory");
}

TEST_CASE("an unaligned CFA reads the bytes that are there, and nothing else") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 9));
  const FakeStack stack(0x7000, {at(0x2050) << 8, at(0x2050) >> 56});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 1), stack);
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050});
  CHECK(end_of(walk) == "no_unwind_info");  // no row covers 0x2050, and fp is none
}

TEST_CASE("a return address outside all modules: UnmappedPc") {
  CHECK(walk_one(8, {0x1234}) == Outcome{"unmapped_pc", {0x1010}});
  CHECK(walk_one(8, {1}) == Outcome{"unmapped_pc", {0x1010}});
}

TEST_CASE("a return address of zero, where nobody can be, is the root's") {
  CHECK(walk_one(8, {0}) == Outcome{"root", {0x1010}});
  World w;
  Row full = row_with_cfa(kRsp, 8);
  full.rules[3] = {.kind = RuleKind::ValCfaOffset, .offset = 8};  // makes it no compact rule
  full.cfa_register = 3;
  w.cfi.add(0x1000, 0x1100, full);
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(3, 0x7000);
  CHECK(end_of(w.walk(registers, FakeStack(0x7000, {0}))) == "root");
  registers.set(kRip, at(0x1020));
  CHECK(end_of(w.walk(registers, FakeStack(0x7000, {0x1234}))) == "unmapped_pc");
}

TEST_CASE("an interrupted pc of zero is a call of a null pointer, not the root") {
  World w;
  Row signal = row_with_cfa(kRsp, 8);
  signal.is_signal_frame = true;
  w.cfi.add(0x1000, 0x1100, signal);
  CHECK(end_of(w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, {0}))) ==
        "unmapped_pc");
}

TEST_CASE("a leaf outside all modules has no frames: UnmappedPc") {
  World w;
  const Walk walk = w.walk(registers_at(0x10, 0x7000, 0), FakeStack(0x7000, {at(0x1010)}));
  CHECK(end_of(walk) == "unmapped_pc");
  CHECK(walk.frames.empty());
}

TEST_CASE("a CFA that does not grow: NoProgress") {
  CHECK(walk_one(0, {at(0x1050), at(0x1050)}) == Outcome{"no_progress", {0x1010}});
  CHECK(walk_one(-8, {at(0x1050)}) == Outcome{"no_progress", {0x1010}});
}

TEST_CASE("a caller that would keep its callee's stack pointer: NoProgress") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  Row kept = row_with_cfa(kRsp, 0);
  SECTION("its return address below it") {}
  SECTION("its return address in a register") {
    kept.rules[kRip] = {.kind = RuleKind::Register, .source_register = kRbx};
  }
  w.cfi.add(0x2000, 0x2100, kept);
  Registers registers = registers_at(at(0x1010), 0x7000, 0);
  registers.set(kRbx, at(0x2050));
  const Walk walk = w.walk(registers, FakeStack(0x7000, {at(0x2050), at(0x2050)}));
  CHECK(end_of(walk) == "no_progress");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050});
}

TEST_CASE("a frame pointer that leads back down: NoProgress") {
  World w;
  w.cfi.add(0x1000, 0x1100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  // The caller's saved frame pointer points at the frame itself: musl's and broken code's loop.
  const FakeStack stack(0x7000, {0, /*0x7008*/ 0x7008, at(0x1050)});
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0x7008), stack);
  CHECK(end_of(walk) == "no_progress");
  CHECK(pcs(walk) == Pcs{0x1010, 0x1050});
}

TEST_CASE("malformed and unsupported unwind information end the walk by name") {
  World w;
  w.cfi.add(0x1000, 0x1100, RowStatus::Malformed);
  w.cfi.add(0x2000, 0x2100, RowStatus::Unsupported);
  const FakeStack stack(0x7000, {0, 0});
  CHECK(end_of(w.walk(registers_at(at(0x1010), 0x7000, 0), stack)) == "bad_cfi");
  CHECK(end_of(w.walk(registers_at(at(0x2010), 0x7000, 0), stack)) == "unsupported");
}

TEST_CASE("a row without a CFA, or whose return address stays in the pc: BadCfi") {
  World w;
  Row no_cfa = row_with_cfa(kRsp, 8);
  no_cfa.cfa_kind = CfaKind::Unset;
  w.cfi.add(0x1000, 0x1100, no_cfa);
  Row same_pc = row_with_cfa(kRsp, 8);
  same_pc.rules[kRip] = {};
  w.cfi.add(0x2000, 0x2100, same_pc);
  const FakeStack stack(0x7000, {at(0x1010), at(0x2010)});
  CHECK(end_of(w.walk(registers_at(at(0x1010), 0x7000, 0), stack)) == "bad_cfi");
  CHECK(end_of(w.walk(registers_at(at(0x2010), 0x7000, 0), stack)) == "bad_cfi");
}

TEST_CASE("an expression that fails ends the walk by its own cause") {
  const Expression loop{0x31, 0x2f, 0xfd, 0xff};
  const Expression underflow{0x22};
  const Expression far_memory{0x30, 0x06};
  const Expression cut_memory{0x77, 8, 0x06};
  const auto end_with = [](const Expression& expression) {
    World w;
    Row row = row_with_cfa(kRsp, 8);
    row.cfa_kind = CfaKind::Expression;
    row.cfa_expression = expression;
    w.cfi.add(0x1000, 0x1100, row);
    return end_of(w.walk(registers_at(at(0x1010), 0x7000, 0), FakeStack(0x7000, {0})));
  };
  CHECK(end_with(loop) == "unsupported");
  CHECK(end_with(underflow) == "bad_cfi");
  CHECK(end_with(far_memory) == "bad_memory");
  CHECK(end_with(cut_memory) == "stack_truncated");
}

TEST_CASE("of a stack deeper than what is kept: its innermost and outermost frames, and its root") {
  World w;
  w.cfi.add(0x1000, 0x2000, row_with_cfa(kRsp, 8));
  w.cfi.add(0x2000, 0x2100, root_row());
  for (const size_t left_out : {size_t{0}, size_t{1}, size_t{10}, kMaxFrames / 2, 3 * kMaxFrames}) {
    INFO(left_out);
    std::vector<uint64_t> words;  // each return address is another one, round and round
    for (size_t i = 1; i + 1 < kMaxFrames + left_out; ++i) words.push_back(at(0x1001 + i % 2048));
    words.push_back(at(0x2050));
    const Walk walk = w.walk(registers_at(at(0x1001), 0x7000, 0), FakeStack(0x7000, words));
    CHECK(walk.is_complete());
    CHECK(walk.frames_left_out == left_out);
    REQUIRE(walk.frames.size() == kMaxFrames);
    for (size_t i = 0; i + 1 < kMaxFrames; ++i) {
      const size_t frame = i < kMaxFrames / 2 ? i : i + left_out;
      REQUIRE(walk.frames[i].pc == 0x1001 + frame % 2048);
      REQUIRE(walk.number_of(i) == frame);
    }
    CHECK(walk.frames[kMaxFrames - 1].pc == 0x2050);
  }
}

TEST_CASE("a stack deeper than any of 1 MiB: FrameLimit, with its inner frames") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  const FakeStack stack(0x7000, std::vector<uint64_t>(kMaxWalkedFrames + 10, at(0x1050)));
  const Walk walk = w.walk(registers_at(at(0x1010), 0x7000, 0), stack);
  CHECK(end_of(walk) == "frame_limit");
  CHECK(walk.frames.size() == kMaxFrames);
  CHECK(walk.frames_left_out == kMaxWalkedFrames - kMaxFrames);
  CHECK(walk.frames[0].pc == 0x1010);
}

TEST_CASE("registers without pc or sp give no walk: UnknownRegister") {
  World w;
  Registers no_sp;
  no_sp.set(kRip, at(0x1010));
  const Walk walk = w.walk(no_sp, FakeStack(0x7000, {0}));
  CHECK(end_of(walk) == "unknown_register");
  CHECK(walk.frames.empty());
}

TEST_CASE("every end and origin has a name of its own") {
  std::vector<std::string> names;
  for (size_t i = 0; i < kWalkEndCount; ++i) names.emplace_back(name_of(static_cast<WalkEnd>(i)));
  for (size_t i = 0; i < kFrameOriginCount; ++i) {
    names.emplace_back(name_of(static_cast<FrameOrigin>(i)));
  }
  CHECK(names == std::vector<std::string>{"root", "stack_truncated", "bad_memory", "unmapped_pc",
                                          "no_unwind_info", "other_stack", "bad_cfi", "unsupported",
                                          "unknown_register", "no_progress", "frame_limit", "leaf",
                                          "cfi", "frame_pointer", "link_register", "code",
                                          "process_start", "kernel_chain"});
}
