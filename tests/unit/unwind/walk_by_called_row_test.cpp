// Code without rows in the frame of code that has one: LuaJIT's traces.
#include "support/catch2.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

constexpr uint64_t kTracePc = kBias + 0x20010;  // in the area without a file
constexpr uint64_t kInterpreter = 0x2100;       // where it is called
constexpr int64_t kInterpreterFrame_bytes = 80;
constexpr size_t kInterpreterFrame_words =
    kInterpreterFrame_bytes / 8 - 1;  // without the return address
constexpr uint64_t kTraceStack = 0x7000;
constexpr uint64_t kInterpretersCaller = 0x4050;

struct TraceWorld : World {
  TraceWorld() {
    Row row = row_with_cfa(kRsp, kInterpreterFrame_bytes);
    row.rules[kRbp] = {.kind = RuleKind::AtCfaOffset, .offset = -16};
    cfi.add(0x2000, 0x3000, row);
    code.put_call(kInterpretersCaller, kInterpreter);
    cfi.add(0x4000, 0x4100, root_row());
    for (uint64_t pc = kTracePc; pc < kTracePc + 0x200; ++pc) memory.put(pc, {0x90});
    memory.put(kTracePc + 0x200, {0xf4});
  }
  // Below the return address, which ends the interpreter's frame.
  static std::vector<uint64_t> stack_with(size_t words_below,
                                          uint64_t return_address = at(kInterpretersCaller),
                                          uint64_t callers_fp = 0) {
    std::vector<uint64_t> words(words_below, 0);
    words.back() = callers_fp;
    words.insert(words.end(), {return_address, 0, 0, 0, 0});
    return words;
  }
  Walk walk_trace(const std::vector<uint64_t>& words, uint64_t fp = 5) {
    return unwinder.walk(registers_at(kTracePc, kTraceStack, fp), FakeStack(kTraceStack, words),
                         modules);
  }
};

}  // namespace

TEST_CASE("a trace runs in the frame of the interpreter, on top of which it keeps its own words") {
  TraceWorld w;
  const size_t spilled_words = GENERATE(0, 1, 127);
  const auto words = TraceWorld::stack_with(kInterpreterFrame_words + spilled_words);
  const Walk walk = w.walk_trace(words);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kTracePc, kInterpretersCaller});
  CHECK(walk.frames[1].origin == FrameOrigin::Code);
  Unwinder without_memory(Arch::X86_64, kDefaultRuleCache_bytes, nullptr);
  const Walk stored = without_memory.walk(registers_at(kTracePc, kTraceStack, 5),
                                          FakeStack(kTraceStack, words), w.modules);
  CHECK(end_of(stored) == "root");
  CHECK(pcs(stored) == Pcs{kTracePc, kInterpretersCaller});
}

TEST_CASE("the interpreter's frame lies above the trace's stack pointer, and not far above") {
  TraceWorld w;
  const size_t words = GENERATE(kInterpreterFrame_words - 1, kInterpreterFrame_words + 128);
  CHECK(pcs(w.walk_trace(TraceWorld::stack_with(words))) == Pcs{kTracePc});
}

TEST_CASE("a function that has no frame where it is called is no interpreter") {
  TraceWorld w;
  w.cfi.add(0x2000, 0x3000, row_with_cfa(kRsp, 8));
  CHECK(pcs(w.walk_trace(TraceWorld::stack_with(kInterpreterFrame_words))) == Pcs{kTracePc});
}

TEST_CASE("where another call stands below, it is not the interpreter that runs the trace") {
  TraceWorld w;
  w.code.put(0x5009, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});  // call *%rax
  auto words = TraceWorld::stack_with(kInterpreterFrame_words + 4);
  words[2] = at(0x5010);
  CHECK(pcs(w.walk_trace(words)) == Pcs{kTracePc});
}

TEST_CASE("a frame pointer that leads on comes first") {
  TraceWorld w;
  w.cfi.add(0x6000, 0x6100, root_row());
  auto words = TraceWorld::stack_with(kInterpreterFrame_words);
  words.insert(words.end(), {0, at(0x6050)});
  const uint64_t fp = kTraceStack + 8 * (words.size() - 2);
  CHECK(pcs(w.walk_trace(words, fp)) == Pcs{kTracePc, 0x6050});
}

TEST_CASE("the interpreter's caller has the frame pointer that the row says") {
  TraceWorld w;
  w.cfi.add(0x4000, 0x4100, row_with_cfa(kRbp, 16));
  w.cfi.add(0x6000, 0x6100, root_row());
  const uint64_t fp = kTraceStack + 8 * (kInterpreterFrame_words + 2);
  auto words = TraceWorld::stack_with(kInterpreterFrame_words, at(kInterpretersCaller), fp);
  words[kInterpreterFrame_words + 3] = at(0x6050);
  const Walk walk = w.walk_trace(words);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kTracePc, kInterpretersCaller, 0x6050});
}

TEST_CASE("the interpreter at its first instruction, where its row does not hold yet") {
  TraceWorld w;
  std::vector<uint64_t> words(kInterpreterFrame_words + 1, 5);
  words[0] = at(kInterpretersCaller);
  const auto walk = [&](uint64_t pc) {
    return w.unwinder.walk(registers_at(at(pc), kTraceStack, 5), FakeStack(kTraceStack, words),
                           w.modules);
  };
  const Walk entered = walk(kInterpreter);
  CHECK(end_of(entered) == "root");
  CHECK(pcs(entered) == Pcs{kInterpreter, kInterpretersCaller});
  CHECK(pcs(walk(kInterpreter + 1)) == Pcs{kInterpreter + 1});
}

TEST_CASE("code below that cannot be read may be a call's") {
  TraceWorld w;
  auto words = TraceWorld::stack_with(kInterpreterFrame_words + 4);
  words[2] = at(0x5010);  // nothing is known of what stands before it
  CHECK(pcs(w.walk_trace(words)) == Pcs{kTracePc});
}

TEST_CASE("what a trace was walked by is looked at again by the next walk") {
  TraceWorld w;
  w.cfi.add(0x5000, 0x5100, row_with_cfa(kRsp, 8));
  w.memory.put_call(kTracePc, kBias + 0x5000);
  w.code.put(0x5109, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});  // call *%rax
  auto words = TraceWorld::stack_with(kInterpreterFrame_words + 5);
  words[0] = kTracePc;
  WalkMemory memory;
  const auto walk = [&] {
    return w.unwinder.walk(registers_at(at(0x5010), kTraceStack, 5), FakeStack(kTraceStack, words),
                           w.modules, &memory);
  };
  CHECK(pcs(walk()) == Pcs{0x5010, kTracePc, kInterpretersCaller});
  CHECK(pcs(walk()) == Pcs{0x5010, kTracePc, kInterpretersCaller});
  words[3] = at(0x5110);
  CHECK(pcs(walk()) == Pcs{0x5010, kTracePc});
}

TEST_CASE("a first frame in code without a file has no interpreter, and is remembered") {
  TraceWorld w;
  Row of_leaf = row_with_cfa(kRbp, 16);
  of_leaf.rules[kRbp] = {.kind = RuleKind::AtCfaOffset, .offset = -16};
  w.cfi.add(0x5000, 0x5100, of_leaf);
  auto words = TraceWorld::stack_with(kInterpreterFrame_words + 6);
  words[2] = 0;  // the frame record of the first
  words[3] = kTracePc;
  const uint64_t record = kTraceStack + 8 * 2;
  words[0] = record;
  words[1] = kTracePc + 0x40;
  WalkMemory memory;
  for (const bool is_remembered : {false, true}) {
    const Walk walk = w.unwinder.walk(registers_at(at(0x5010), kTraceStack, kTraceStack),
                                      FakeStack(kTraceStack, words), w.modules, &memory);
    CHECK(end_of(walk) == "root");
    CHECK(pcs(walk) == Pcs{0x5010, kTracePc + 0x40, kTracePc});
    CHECK((w.unwinder.stats().remembered_frames > 0) == is_remembered);
  }
}
