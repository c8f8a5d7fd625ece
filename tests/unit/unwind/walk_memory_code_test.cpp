// Code that no file holds: trampolines, and what compilers make while the program runs. The
// process's memory says what it is.
#include "support/catch2.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

constexpr uint64_t kTrampoline = kBias + 0x20100;  // in the module without an image
constexpr uint64_t kOtherCode = kBias + 0x20800;
constexpr uint64_t kCalleePc = 0x1050, kCallerPc = 0x2050, kOuterPc = 0x3050, kRootPc = 0x4050;
constexpr uint64_t kStackBegin = 0x7000;

// The program's functions have frames of 16 bytes and leave the frame pointer alone.
struct MemoryCodeWorld : World {
  MemoryCodeWorld() {
    for (const uint64_t function : {0x1000, 0x2000, 0x3000}) {
      cfi.add(function, function + 0x100, row_with_cfa(kRsp, 16));
    }
    cfi.add(0x4000, 0x4100, root_row());
    for (const uint64_t pc : {kCallerPc, kOuterPc, kRootPc}) put_call(code, pc);
  }

  // call *%rax
  static void put_call(FakeCode& where, uint64_t return_pc) {
    where.put(return_pc - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});
  }

  Walk walk(const std::vector<uint64_t>& words, uint64_t fp, uint64_t pc = at(kCalleePc)) {
    return unwinder.walk(registers_at(pc, kStackBegin, fp), FakeStack(kStackBegin, words), modules);
  }
};

// Four frames of two words, the second one the return address.
const std::vector<uint64_t> kWords{0, kTrampoline,  0, at(kCallerPc),
                                   0, at(kOuterPc), 0, at(kRootPc)};
const Pcs kThroughTrampoline{kCalleePc, kTrampoline, kCallerPc, kOuterPc, kRootPc};
// A frame pointer that leads past the trampoline's caller.
constexpr uint64_t kRecordOfOuter = kStackBegin + 4 * 8;

}  // namespace

TEST_CASE("a trampoline is left by its code, wherever the frame pointer leads") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x48, 0x83, 0xc4, 0x08, 0xc3});  // add $8, %rsp; ret
  const uint64_t fp = GENERATE(uint64_t{0}, uint64_t{42}, kRecordOfOuter);
  const Walk walk = w.walk(kWords, fp);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == kThroughTrampoline);
  CHECK(walk.frames[2].origin == FrameOrigin::Code);
}

TEST_CASE("without its memory, code that no file holds goes by the frame pointer") {
  MemoryCodeWorld w;
  CHECK(pcs(w.walk(kWords, kRecordOfOuter)) == Pcs{kCalleePc, kTrampoline, kOuterPc, kRootPc});
  CHECK(end_of(w.walk(kWords, 42)) == "no_unwind_info");
}

TEST_CASE("a trampoline is left by its code where it was interrupted itself") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3});  // call *%rcx; ...
  const std::vector<uint64_t> words{0, at(kCallerPc), 0, at(kOuterPc), 0, at(kRootPc)};
  const Walk walk = w.walk(words, 42, kTrampoline);
  CHECK(pcs(walk) == Pcs{kTrampoline, kCallerPc, kOuterPc, kRootPc});
}

TEST_CASE("code that jumps is left by what it says where the frame record is further out") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x75, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3});  // jne; add $8, %rsp; ret
  CHECK(pcs(w.walk(kWords, kRecordOfOuter)) == kThroughTrampoline);
}

TEST_CASE(
    "code that jumps goes by a frame pointer that leads to code, if it leads nowhere itself") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x75, 0x00, 0x48, 0x83, 0xc4, 0x00, 0xc3});  // jne; add $0, %rsp; ret
  CHECK(pcs(w.walk(kWords, kRecordOfOuter)) == Pcs{kCalleePc, kTrampoline, kOuterPc, kRootPc});
}

TEST_CASE("code that keeps a frame pointer is not read each time for a caller further in") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x75, 0x00, 0xc9, 0xc3});  // jne; leave; ret
  const auto reads_of_walk = [&] {
    const int before = w.memory.reads();
    CHECK(pcs(w.walk(kWords, kRecordOfOuter)) == Pcs{kCalleePc, kTrampoline, kOuterPc, kRootPc});
    return w.memory.reads() - before;
  };
  const int first = reads_of_walk();
  CHECK(reads_of_walk() < first);
}

TEST_CASE("a compiler's function that was just called has its caller, whose the frame pointer is") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x55, 0x48, 0x89, 0xe5, 0x75, 0x00});  // push %rbp; mov; jne
  const uint64_t record = kStackBegin + 8;
  const std::vector<uint64_t> called{at(kCallerPc), 0, at(kOuterPc), 0, at(kRootPc)};
  CHECK(pcs(w.walk(called, record, kTrampoline)) == Pcs{kTrampoline, kCallerPc, kOuterPc, kRootPc});
}

TEST_CASE("a walk past code that could not be read is not remembered") {
  MemoryCodeWorld w;
  WalkMemory memory;
  const FakeStack stack(kStackBegin, kWords);
  const Registers registers = registers_at(at(kCalleePc), kStackBegin, kRecordOfOuter);
  w.memory.put(kTrampoline, {0x75, 0x00});  // jne, and nothing that could be read
  const auto walk = [&] { return pcs(w.unwinder.walk(registers, stack, w.modules, &memory)); };
  for (int i = 0; i < 3; ++i) CHECK(walk() == Pcs{kCalleePc, kTrampoline, kOuterPc, kRootPc});
  w.memory.put(kTrampoline + 2, {0x48, 0x83, 0xc4, 0x08, 0xc3});
  CHECK(walk() == kThroughTrampoline);
}

TEST_CASE("a caller further in is found again after a word that was none") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x75, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3});
  std::vector<uint64_t> other = kWords;
  other[3] = 0;
  CHECK(pcs(w.walk(other, kRecordOfOuter)) == Pcs{kCalleePc, kTrampoline, kOuterPc, kRootPc});
  CHECK(pcs(w.walk(kWords, kRecordOfOuter)) == kThroughTrampoline);
}

TEST_CASE("deep stacks of code that keeps frame pointers are soon read no more, and remembered") {
  MemoryCodeWorld w;
  constexpr uint64_t kFrames = 120;
  std::vector<uint64_t> words;
  for (uint64_t i = 0; i < kFrames; ++i) {
    const uint64_t pc = kTrampoline + 8 * i;
    w.memory.put(pc, {0x75, 0x00, 0xc9, 0xc3, 0x90, 0x90, 0x90, 0x90});  // jne; leave; ret
    words.insert(words.end(), {kStackBegin + 16 * (i + 1), pc});
  }
  words.insert(words.end(), {0, at(kRootPc)});
  const auto reads_of_walk = [&] {
    const int before = w.memory.reads();
    const Walk walk = w.walk(words, kStackBegin, kTrampoline);
    CHECK(end_of(walk) == "root");
    CHECK(walk.frames_walked() == kFrames + 2);
    return w.memory.reads() - before;
  };
  const int first = reads_of_walk();
  int rest = 0;
  for (int i = 0; i < 20; ++i) rest += reads_of_walk();
  CHECK(rest < 20 * first * 3 / 4);  // the rest reads what goes straight to a return

  WalkMemory memory;
  const Registers registers = registers_at(kTrampoline, kStackBegin, kStackBegin);
  w.unwinder.walk(registers, FakeStack(kStackBegin, words), w.modules, &memory);
  CHECK(memory.steps().size() > kFrames / 2);
}

TEST_CASE("code that jumps is read where the frame pointer leads nowhere") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x75, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3});
  CHECK(pcs(w.walk(kWords, 42)) == kThroughTrampoline);
}

TEST_CASE("a frame pointer that leads beyond the copy is believed before code that jumps") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x75, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3});
  std::vector<uint64_t> words = kWords;
  words[3] = 0;  // the code's caller
  const Walk walk = w.walk(words, kStackBegin + 8 * kWords.size());
  CHECK(pcs(walk) == Pcs{kCalleePc, kTrampoline});
  CHECK(end_of(walk) == "stack_truncated");
}

TEST_CASE("what a trampoline leads to has to lie behind a call, in memory as in a file") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x48, 0x83, 0xc4, 0x08, 0xc3});
  std::vector<uint64_t> words = kWords;
  words[3] = kOtherCode;
  CHECK(pcs(w.walk(words, 42)) == Pcs{kCalleePc, kTrampoline});
  w.memory.put(kOtherCode - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
  CHECK(pcs(w.walk(words, 42)) == Pcs{kCalleePc, kTrampoline});
  w.put_call(w.memory, kOtherCode);
  w.memory.put(kOtherCode, {0x48, 0x83, 0xc4, 0x08, 0xc3});
  CHECK(pcs(w.walk(words, 42)) == Pcs{kCalleePc, kTrampoline, kOtherCode, kOuterPc, kRootPc});
}

TEST_CASE("code in memory that changes is read again") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x48, 0x83, 0xc4, 0x08, 0xc3});
  CHECK(pcs(w.walk(kWords, 42)) == kThroughTrampoline);
  w.memory.put(kTrampoline, {0x48, 0x83, 0xc4, 0x18, 0xc3});  // add $24, %rsp
  CHECK(pcs(w.walk(kWords, 42)) == Pcs{kCalleePc, kTrampoline, kOuterPc, kRootPc});
}

TEST_CASE("what was walked without the code is not remembered") {
  MemoryCodeWorld w;
  WalkMemory memory;
  const FakeStack stack(kStackBegin, kWords);
  const Registers registers = registers_at(at(kCalleePc), kStackBegin, kRecordOfOuter);
  const Walk blind = w.unwinder.walk(registers, stack, w.modules, &memory);
  CHECK(pcs(blind) == Pcs{kCalleePc, kTrampoline, kOuterPc, kRootPc});
  w.memory.put(kTrampoline, {0x48, 0x83, 0xc4, 0x08, 0xc3});
  const Walk seeing = w.unwinder.walk(registers, stack, w.modules, &memory);
  CHECK(pcs(seeing) == kThroughTrampoline);
}

TEST_CASE("whether the frame pointer leads to code is asked anew for each walk") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0x75, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3});
  WalkMemory memory;
  std::vector<uint64_t> words = kWords;
  words.insert(words.end(), {0, 42});
  const Registers registers = registers_at(at(kCalleePc), kStackBegin, kStackBegin + 64);
  const auto walk = [&](WalkMemory* with) {
    return pcs(w.unwinder.walk(registers, FakeStack(kStackBegin, words), w.modules, with));
  };
  CHECK(walk(&memory) == kThroughTrampoline);
  words[9] = at(kOuterPc);
  CHECK(walk(&memory) == walk(nullptr));
}

TEST_CASE("deep recursion by frame pointers in code that no file holds ends at its root") {
  MemoryCodeWorld w;
  constexpr uint64_t kDepth = 20000;
  const uint64_t distinct_pcs = GENERATE(1, 100);
  std::vector<uint64_t> words;
  for (uint64_t i = 0; i < kDepth; ++i) {
    const uint64_t pc = kTrampoline + 8 * (i % distinct_pcs);
    w.memory.put(pc, {0x75, 0x00, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
    words.insert(words.end(), {kStackBegin + 16 * (i + 1), pc});
  }
  words.insert(words.end(), {0, at(kRootPc)});
  const Walk walk = w.walk(words, kStackBegin, kTrampoline);
  CHECK(end_of(walk) == "root");
  CHECK(walk.frames_walked() == kDepth + 2);
}

TEST_CASE("code of a file that is none of ELF is read from the process, too") {
  MemoryCodeWorld w;
  constexpr uint64_t kInNamedFile =
      0x10100;  // in the module of which nothing is known but its name
  w.memory.put(at(kInNamedFile), {0x48, 0x83, 0xc4, 0x08, 0xc3});  // add $8, %rsp; ret
  std::vector<uint64_t> words = kWords;
  words[1] = at(kInNamedFile);
  const Walk walk = w.walk(words, kRecordOfOuter);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kCalleePc, kInNamedFile, kCallerPc, kOuterPc, kRootPc});
  MemoryCodeWorld::put_call(w.memory, at(kInNamedFile));  // and leads to where a call is
  w.code.put(0x5010, {0x48, 0x83, 0xc4, 0x08, 0xc3});
  CHECK(pcs(w.walk({0, at(kInNamedFile), 0, at(kRootPc)}, 0, at(0x5010))) ==
        Pcs{0x5010, kInNamedFile, kRootPc});
}

// jmp *%rax; and behind it add $8, %rsp; ret.
const std::vector<int> kBlock{0xff, 0xe0, 0x48, 0x83, 0xc4, 0x08, 0xc3};

TEST_CASE("where nothing else leads out of a block, its end behind a jump does") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, kBlock);
  const Walk walk = w.walk(kWords, 42);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == kThroughTrampoline);
  CHECK(walk.frames[2].origin == FrameOrigin::Code);
  // The frame pointer comes first, if there is one.
  CHECK(pcs(w.walk(kWords, kRecordOfOuter)) == Pcs{kCalleePc, kTrampoline, kOuterPc, kRootPc});
  // What it leads to has to be behind a call.
  std::vector<uint64_t> words = kWords;
  words[3] = at(kCallerPc + 1);
  CHECK(pcs(w.walk(words, 42)) == Pcs{kCalleePc, kTrampoline});
}

TEST_CASE("HotSpot's code is not left so") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, kBlock);
  w.modules.set_has_hotspot();
  CHECK(pcs(w.walk(kWords, 42)) == Pcs{kCalleePc, kTrampoline});
}

TEST_CASE("a block whose end leads nowhere is read to it more and more seldom") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, kBlock);
  std::vector<uint64_t> words = kWords;
  words[3] = 5;
  const auto reads_of_walk = [&] {
    const int before = w.memory.reads();
    CHECK(pcs(w.walk(words, 42)) == Pcs{kCalleePc, kTrampoline});
    return w.memory.reads() - before;
  };
  const int first = reads_of_walk();
  CHECK(reads_of_walk() < first);
  words[3] = at(kCallerPc);
  bool was_found = false;
  for (int i = 0; i < 16 && !was_found; ++i) was_found = pcs(w.walk(words, 42)).size() > 2;
  CHECK(was_found);
  // Then it is a way again: the next failure is the first one.
  words[3] = 5;
  reads_of_walk();
  reads_of_walk();
  words[3] = at(kCallerPc);
  CHECK(pcs(w.walk(words, 42)) == kThroughTrampoline);
}

TEST_CASE("a block that could not be read is read by the next walk") {
  MemoryCodeWorld w;
  w.memory.put(kTrampoline, {0xff, 0xe0});
  CHECK(pcs(w.walk(kWords, 42)) == Pcs{kCalleePc, kTrampoline});
  w.memory.put(kTrampoline, kBlock);
  CHECK(pcs(w.walk(kWords, 42)) == kThroughTrampoline);
}
