// HotSpot's compiled code, its interpreter, and how they call each other.
#include "support/catch2.h"
#include "walk_compiled_code_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

TEST_CASE("compiled code is left by its prologue, wherever the frame pointer leads") {
  CompiledCodeWorld w;
  const uint64_t pushed_words = GENERATE(0, 1, 2, 3);  // at the moment of the sample
  std::vector<uint64_t> words(pushed_words, 0);
  push_frame(words, kOuterMethodPc);
  push_frame(words, at(kCallerOfMethodsPc));
  // The last one would skip kOuterMethod.
  const uint64_t fp = GENERATE_COPY(uint64_t{0}, uint64_t{42}, address_of_word(pushed_words + 10));
  const Walk walk = w.walk(words, fp);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kInnerMethodPc, kOuterMethodPc, kCallerOfMethodsPc});
  CHECK(walk.frames[1].origin == FrameOrigin::Code);
}

TEST_CASE("compiled code that calls has pushed nothing") {
  CompiledCodeWorld w;
  std::vector<uint64_t> words;
  push_frame(words, kOuterMethodPc);
  words.push_back(0);
  push_frame(words, at(kCallerOfMethodsPc));
  CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc, kOuterMethodPc});
}

TEST_CASE("the interpreter, which called compiled code, is found and left by the frame pointer") {
  CompiledCodeWorld w;
  const uint64_t record = address_of_word(8);
  // Where the stack pointer was at the call, perhaps in words above the record, and at its own.
  const uint64_t own_sp = GENERATE_COPY(address_of_word(6), address_of_word(7), uint64_t{0} - 2);
  std::vector<uint64_t> words;
  push_frame(words, kInterpreterPc, record);
  words.insert(words.end(), {own_sp, address_of_word(10), 0, at(kCallerOfMethodsPc)});
  const Walk walk = w.walk(words, 42);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kInnerMethodPc, kInterpreterPc, kCallerOfMethodsPc});
  CHECK(walk.frames[2].origin == FrameOrigin::FramePointer);
}

TEST_CASE("the interpreter is not skipped by code that it called and that has no frame yet") {
  CompiledCodeWorld w;
  w.memory.put(kInnerMethod, std::vector<int>(12, 0x90));  // no beginning is near
  w.memory.put(kInnerMethodPc, {0x75, 0x00, 0xff, 0xe0});
  const auto walk = [&](uint64_t top, uint64_t own_sp) {
    return w.walk({top, own_sp, address_of_word(5), 0, at(kCallerOfMethodsPc)}, address_of_word(3));
  };
  for (const uint64_t own_sp : {address_of_word(1), uint64_t{0} - 2}) {
    CHECK(pcs(walk(kInterpreterPc, own_sp)) ==
          Pcs{kInnerMethodPc, kInterpreterPc, kCallerOfMethodsPc});
    // It may have taken the return address off the stack for a moment.
    CHECK(pcs(walk(77, own_sp)) == Pcs{kInnerMethodPc});
    CHECK(end_of(walk(77, own_sp)) == "no_unwind_info");
  }
  // The interpreter itself, which calls nothing; or was returned to, and has not noted it yet.
  const Pcs interpreter_only{kInnerMethodPc, kCallerOfMethodsPc};
  CHECK(pcs(walk(kInterpreterPc, 0)) == interpreter_only);
  CHECK(pcs(walk(kInterpreterPc, kMethodStack)) == interpreter_only);
  CHECK(pcs(walk(kInnerMethodPc, address_of_word(1))) == interpreter_only);
  CHECK(pcs(walk(kInnerMethodPc - 15, address_of_word(1))) == interpreter_only);
  CHECK(pcs(walk(kInnerMethodPc - 16, address_of_word(1))) != interpreter_only);
}

TEST_CASE("so it is where the compiled code has pushed registers for a moment") {
  CompiledCodeWorld w;
  std::vector<uint64_t> words{0, 0};
  push_frame(words, kInterpreterPc, address_of_word(10));
  words.insert(words.end(), {address_of_word(8), address_of_word(12), 0, at(kCallerOfMethodsPc)});
  CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc, kInterpreterPc, kCallerOfMethodsPc});
}

TEST_CASE(
    "the interpreter's stack pointer is above all arguments of the call, of which are 4 KiB") {
  CompiledCodeWorld w;
  for (const uint64_t arguments : {512, 513}) {
    std::vector<uint64_t> words;
    const uint64_t own_sp = 6 + arguments;
    push_frame(words, kInterpreterPc, address_of_word(own_sp + 2));
    words.insert(words.end(), arguments, 0);
    words.insert(words.end(),
                 {address_of_word(own_sp), address_of_word(own_sp + 4), 0, at(kCallerOfMethodsPc)});
    CHECK(w.walk(words, 42).is_complete() == (arguments == 512));
  }
}

TEST_CASE("a frame pointer that is not of the interpreter in that call does not lead on") {
  CompiledCodeWorld w;
  // Another one's farther out; below its own frame; none.
  const auto [own_sp, callers_sp] = GENERATE_COPY(
      std::pair(address_of_word(6) + 8192, address_of_word(10)),
      std::pair(address_of_word(5), address_of_word(10)),
      std::pair(address_of_word(6), address_of_word(9)), std::pair(uint64_t{0}, uint64_t{0}),
      std::pair(address_of_word(6) + 1, address_of_word(10)));
  std::vector<uint64_t> words;
  push_frame(words, kInterpreterPc, address_of_word(8));
  words.insert(words.end(), {own_sp, callers_sp, 0, at(kCallerOfMethodsPc)});
  const Walk walk = w.walk(words, 42);
  CHECK(end_of(walk) == "no_unwind_info");
  CHECK(pcs(walk) == Pcs{kInnerMethodPc, kInterpreterPc});
}

TEST_CASE("compiled code that called the interpreter has its stack pointer where that kept it") {
  CompiledCodeWorld w;
  const uint64_t locals_words = GENERATE(0, 1, 6, 300);
  // Of the interpreter: that it calls nothing, where the stack was, its caller's frame pointer, its
  // return address; the room that it made.
  std::vector<uint64_t> words{0, address_of_word(4 + locals_words), 77, kOuterMethodPc};
  words.insert(words.end(), locals_words, 0);
  push_frame(words, at(kCallerOfMethodsPc));
  const Walk walk = w.walk(words, address_of_word(2), kInterpreterPc);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kInterpreterPc, kOuterMethodPc, kCallerOfMethodsPc});
}

TEST_CASE("the interpreter has made room for 16 KiB at the most") {
  CompiledCodeWorld w;
  for (const uint64_t locals_words : {2048, 2049}) {
    std::vector<uint64_t> words{0, address_of_word(4 + locals_words), 77, kOuterMethodPc};
    words.insert(words.end(), locals_words, 0);
    push_frame(words, at(kCallerOfMethodsPc));
    const Walk walk = w.walk(words, address_of_word(2), kInterpreterPc);
    CHECK(walk.is_complete() == (locals_words == 2048));
  }
}

TEST_CASE("a word that keeps no stack pointer is none") {
  CompiledCodeWorld w;
  w.memory.put(kNativePc - 0x20, {0x55, 0x48, 0x89, 0xe5});  // push %rbp; mov %rsp,%rbp
  const uint64_t word = GENERATE(uint64_t{0}, uint64_t{42}, kMethodStack, address_of_word(4) + 1,
                                 address_of_word(4), UINT64_MAX);
  const std::vector<uint64_t> words{
      word, 77, kOuterMethodPc, 0, 0, 0, 0, 0, at(kCallerOfMethodsPc), 0, 0, 0, 0};
  const Walk walk = w.walk(words, address_of_word(1), kNativePc);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kNativePc, kOuterMethodPc, kCallerOfMethodsPc});
}

TEST_CASE("what a prologue leads to has to be behind a call, or code that no file holds") {
  CompiledCodeWorld w;
  const std::vector<uint64_t> words{0, 0, 0, 0, 77, at(0x4070), 0, 0, 0, 0, at(kCallerOfMethodsPc)};
  for (const uint64_t fp : {uint64_t{42}, address_of_word(9)}) {
    CHECK(pcs(w.walk(words, fp)) == Pcs{kInnerMethodPc});
    CHECK(end_of(w.walk(words, fp)) == "no_unwind_info");
  }
  // -XX:+PreserveFramePointer
  w.memory.put(kInnerMethod + 8, {0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x20});
  CHECK(pcs(w.walk(words, address_of_word(9))) == Pcs{kInnerMethodPc, kCallerOfMethodsPc});
}

TEST_CASE("only in a process that runs HotSpot its functions' beginnings are looked for") {
  CompiledCodeWorld w;
  w.modules.clear();
  w.modules.insert({{kArea}, {kArea + kArea_bytes}, {}, kNoImage, nullptr});
  std::vector<uint64_t> words;
  push_frame(words, kOuterMethodPc);
  CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc});
}

TEST_CASE("what was walked where no beginning was found is not remembered") {
  CompiledCodeWorld w;
  w.memory.put(kInnerMethod, std::vector<int>(12, 0x90));
  w.memory.put(kInnerMethodPc, {0x75, 0x00, 0x90, 0x90});
  w.memory.put_call(kInnerMethodPc, kOuterMethod);
  // It called the interpreter; the record of another interpreter farther out.
  std::vector<uint64_t> words{0, address_of_word(4), address_of_word(18), kInnerMethodPc};
  push_frame(words, kOuterMethodPc);
  push_frame(words, at(kCallerOfMethodsPc));
  words.insert(words.end(), {address_of_word(16), address_of_word(20), 0, at(kCallerOfMethodsPc)});
  WalkMemory memory;
  const auto walk = [&](WalkMemory* with) {
    return pcs(w.unwinder.walk(registers_at(kInterpreterPc, kMethodStack, address_of_word(2)),
                               FakeStack(kMethodStack, words), w.modules, with));
  };
  CHECK(walk(&memory) == Pcs{kInterpreterPc, kInnerMethodPc, kCallerOfMethodsPc});
  w.memory.put(kInnerMethod, {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                              0x48, 0x83, 0xec, 0x20});
  // It is searched again after a pause.
  for (int i = 0; i < 16; ++i) walk(nullptr);
  CHECK(walk(nullptr) == Pcs{kInterpreterPc, kInnerMethodPc, kOuterMethodPc, kCallerOfMethodsPc});
  CHECK(walk(&memory) == walk(nullptr));
}

TEST_CASE("a kept stack pointer whose frame lies beyond the copy is no reason to end there") {
  CompiledCodeWorld w;
  const std::vector<uint64_t> words{0, address_of_word(6),    77, kOuterMethodPc, 0, 0, 0, 0,
                                    0, at(kCallerOfMethodsPc)};
  CHECK(pcs(w.walk(words, address_of_word(2), kInterpreterPc)) ==
        Pcs{kInterpreterPc, kOuterMethodPc, kCallerOfMethodsPc});
}

TEST_CASE("the stack pointer that the interpreter kept is read anew by each walk") {
  CompiledCodeWorld w;
  w.code.put(0x4070 - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});
  WalkMemory memory;
  // Both places have a return address.
  std::vector<uint64_t> words{0, 0, 77, kOuterMethodPc,         0, 0,
                              0, 0, 0,  at(kCallerOfMethodsPc), 0, at(0x4070)};
  const Registers registers = registers_at(kInterpreterPc, kMethodStack, address_of_word(2));
  const auto walk = [&](WalkMemory* with) {
    return pcs(w.unwinder.walk(registers, FakeStack(kMethodStack, words), w.modules, with));
  };
  for (const bool is_kept : {false, true, false}) {
    words[1] = address_of_word(is_kept ? 6 : 4);
    const Pcs expected{kInterpreterPc, kOuterMethodPc,
                       is_kept ? uint64_t{0x4070} : kCallerOfMethodsPc};
    CHECK(walk(&memory) == expected);
    CHECK(walk(nullptr) == expected);
  }
}

// A method whose first bytes are not in memory yet; where it calls, a branch is near.
struct UnreadMethodWorld : CompiledCodeWorld {
  static constexpr uint64_t kArea = kBias + 0x21000, kBegin = kArea + 0x600, kPc = kBegin + 0x80;

  UnreadMethodWorld() {
    modules.insert({{kArea}, {kArea + 0x1000}, {}, kNoImage, nullptr});
    memory.put_call(kPc, kOuterMethod);
    memory.put(kPc, {0x75, 0x00, 0x90, 0x90});
  }

  void put_the_rest() {
    for (uint64_t pc = kArea; pc < kPc - 7; ++pc) memory.put(pc, {0x90});
    memory.put(kBegin, {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20});
  }
};

TEST_CASE("a frame pointer does not lead on from code that was not read, if its caller kept none") {
  UnreadMethodWorld w;
  std::vector<uint64_t> words;
  push_frame(words, kOuterMethodPc);
  push_frame(words, w.kPc, address_of_word(20));
  push_frame(words, at(kCallerOfMethodsPc));
  words.insert(words.end(), {0, 0, 0, at(kCallerOfMethodsPc)});
  const Walk unread = w.walk(words, 42);
  CHECK(end_of(unread) == "no_unwind_info");
  CHECK(pcs(unread) == Pcs{kInnerMethodPc, kOuterMethodPc, w.kPc});
  w.put_the_rest();
  const Walk read = w.walk(words, 42);
  CHECK(end_of(read) == "root");
  CHECK(read.frames[3].origin == FrameOrigin::Code);
}

TEST_CASE("nor where code that was not read called nothing yet, or called a function with CFI") {
  UnreadMethodWorld w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 16));
  std::vector<uint64_t> words;
  push_frame(words, kOuterMethodPc);
  push_frame(words, at(kCallerOfMethodsPc));
  words.insert(words.end(), {0, at(kCallerOfMethodsPc)});
  for (const uint64_t fp : {uint64_t{0}, address_of_word(12)}) {
    const Walk of_leaf = w.walk(words, fp, w.kPc);
    CHECK(end_of(of_leaf) == "no_unwind_info");
    CHECK(pcs(of_leaf) == Pcs{w.kPc});
    std::vector<uint64_t> below = words;
    below.insert(below.begin(), {0, w.kPc});
    const Walk of_native = w.walk(below, fp == 0 ? 0 : fp + 16, at(0x1050));
    CHECK(end_of(of_native) == "no_unwind_info");
    CHECK(pcs(of_native) == Pcs{0x1050, w.kPc});
  }
}

TEST_CASE("the interpreter is not skipped where what it called was not read") {
  UnreadMethodWorld w;
  // Neither method has changed the interpreter's frame pointer.
  const uint64_t record = address_of_word(14);
  std::vector<uint64_t> words;
  push_frame(words, w.kPc, record);
  push_frame(words, kInterpreterPc, record);
  words.insert(words.end(), {address_of_word(12), address_of_word(16), 0, at(kCallerOfMethodsPc)});
  const Walk unread = w.walk(words, 42);
  CHECK(end_of(unread) == "no_unwind_info");
  CHECK(pcs(unread) == Pcs{kInnerMethodPc, w.kPc});
  w.put_the_rest();
  CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc, w.kPc, kInterpreterPc, kCallerOfMethodsPc});
}

TEST_CASE("what was walked where a beginning could not be read is not remembered") {
  UnreadMethodWorld w;
  // The interpreter's frame, the unread method's, and an interpreter's that would skip it.
  std::vector<uint64_t> words{0, address_of_word(4), address_of_word(12), w.kPc};
  push_frame(words, kOuterMethodPc);
  words.insert(words.end(), {address_of_word(10), address_of_word(14), 0, at(kCallerOfMethodsPc), 0,
                             at(kCallerOfMethodsPc)});
  WalkMemory memory;
  const auto walk = [&](WalkMemory* with) {
    return pcs(w.unwinder.walk(registers_at(kInterpreterPc, kMethodStack, address_of_word(2)),
                               FakeStack(kMethodStack, words), w.modules, with));
  };
  CHECK(walk(&memory) == Pcs{kInterpreterPc, w.kPc, kCallerOfMethodsPc});
  w.put_the_rest();
  CHECK(walk(nullptr) == Pcs{kInterpreterPc, w.kPc, kOuterMethodPc, kCallerOfMethodsPc});
  CHECK(walk(&memory) == walk(nullptr));
}

TEST_CASE("where the work is used up, compiled code is not left by the frame pointer") {
  CompiledCodeWorld w;
  constexpr uint64_t kFunctions = 2000, kFunction_bytes = 0x800;
  const uint64_t area = kBias + 0x100000;
  w.modules.insert({{area}, {area + (kFunctions + 1) * kFunction_bytes}, {}, kNoImage, nullptr});
  std::vector<uint64_t> words;
  for (uint64_t i = 0; i < kFunctions; ++i) {
    const uint64_t function = area + i * kFunction_bytes;
    w.memory.put(function, std::vector<int>(kFunction_bytes, 0x90));
    w.memory.put(function, {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                            0x48, 0x83, 0xec, 0x20});
    w.memory.put_call(function + 0x700, area);
    const uint64_t caller_pc = function + kFunction_bytes + 0x700;
    push_frame(words, i + 1 < kFunctions ? caller_pc : at(kCallerOfMethodsPc),
               address_of_word(6 * kFunctions));
  }
  words.insert(words.end(), {0, at(kCallerOfMethodsPc)});
  const Walk walk = w.walk(words, 42, area + 0x700);
  CHECK(end_of(walk) == "unsupported");
  CHECK(walk.frames_walked() > 100);
  CHECK(walk.frames_walked() < kFunctions);
}

TEST_CASE("that code has no such beginning says nothing of another process's at that place") {
  CompiledCodeWorld w;
  w.memory.put_call(kOuterMethodPc, kOuterMethod);         // not to a stub
  w.memory.put(kInnerMethodPc, {0x75, 0x00, 0xff, 0xe0});  // jmp *%rax
  w.memory.put(kInnerMethod, std::vector<int>(12, 0x90));
  std::vector<uint64_t> words;
  push_frame(words, kOuterMethodPc);
  for (w.memory.space = 1; w.memory.space < 3; ++w.memory.space) {
    for (int i = 0; i < 5; ++i) CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc});
  }
  w.memory.put(kInnerMethod, {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                              0x48, 0x83, 0xec, 0x20});
  CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc, kOuterMethodPc});
  w.memory.space = 1;
  CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc});
}

TEST_CASE("code that has no such beginning is searched more and more seldom") {
  CompiledCodeWorld w;
  const std::vector<uint64_t> words{0, address_of_word(4), 77, at(kCallerOfMethodsPc)};
  constexpr int kWalks = 100;
  const auto reads_of_walk = [&] {
    const int before = w.memory.reads();
    CHECK(pcs(w.walk(words, address_of_word(2), kInterpreterPc)) ==
          Pcs{kInterpreterPc, kCallerOfMethodsPc});
    return w.memory.reads() - before;
  };
  const int first = reads_of_walk();
  int rest = 0;
  for (int i = 1; i < kWalks; ++i) rest += reads_of_walk();
  CHECK(rest < kWalks * first * 3 / 4);  // the rest reads what goes straight to a return
}

TEST_CASE("of code that was compiled since the beginning is looked for again at once") {
  const bool is_told = GENERATE(false, true);
  CompiledCodeWorld w;
  w.memory.put(kInnerMethod, std::vector<int>(12, 0x90));
  w.memory.put(kOuterMethodPc - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});  // call *%rax
  std::vector<uint64_t> words;
  push_frame(words, kOuterMethodPc);
  push_frame(words, at(kCallerOfMethodsPc));
  CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc});
  w.memory.put(kInnerMethod,
               {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20});
  const auto registers = registers_at(kInnerMethodPc, kMethodStack, 42);
  const FakeStack stack(kMethodStack, words);
  const Walk walk = is_told ? w.unwinder.walk_again(registers, stack, w.modules, nullptr)
                            : w.unwinder.walk(registers, stack, w.modules);
  const Pcs whole{kInnerMethodPc, kOuterMethodPc, kCallerOfMethodsPc};
  CHECK((pcs(walk) == whole) == is_told);
}
