// HotSpot's stubs, which have no frame.
#include "support/catch2.h"
#include "walk_compiled_code_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

// What a method calls that has no frame, behind another method; a branch is in the way.
struct StubWorld : CompiledCodeWorld {
  static constexpr uint64_t kStub = kArea + 0x700, kPc = kStub + 0x20;

  StubWorld() { memory.put(kPc, {0x75, 0x00, 0x90, 0x90}); }

  // As many registers pushed, and as many of its arguments.
  Walk walk_of(uint64_t saved, uint64_t arguments) {
    std::vector<uint64_t> words(saved, 77);
    words.push_back(kInnerMethodPc);
    words.insert(words.end(), arguments, 78);
    push_frame(words, kOuterMethodPc);
    push_frame(words, at(kCallerOfMethodsPc));
    return walk(words, 42, kPc);
  }
};

}  // namespace

TEST_CASE("a stub without a frame is left by the call that leads to it") {
  StubWorld w;
  w.memory.put_call(kInnerMethodPc, w.kStub);
  const Walk walk = w.walk_of(GENERATE(0, 1, 4, 8), GENERATE(0, 2));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{w.kPc, kInnerMethodPc, kOuterMethodPc, kCallerOfMethodsPc});
}

TEST_CASE("the frame of the function before a stub is not taken for the stub's") {
  StubWorld w;
  // Its caller has four words, and with the two of the stub that makes six.
  constexpr uint64_t kStubCaller = kArea + 0x900, kStubCallerPc = kStubCaller + 0x40;
  w.memory.put(kStubCaller,
               {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x10});
  w.memory.put_call(kStubCallerPc, w.kStub);
  std::vector<uint64_t> words{77, kStubCallerPc, 0, 0, 77, kOuterMethodPc};
  push_frame(words, at(kCallerOfMethodsPc));
  CHECK(pcs(w.walk(words, 42, w.kPc)) ==
        Pcs{w.kPc, kStubCallerPc, kOuterMethodPc, kCallerOfMethodsPc});
}

TEST_CASE("a stub that goes straight to its return may have arguments on the stack, too") {
  StubWorld w;
  w.memory.put_call(kInnerMethodPc, w.kStub);
  w.memory.put(w.kPc, {0x58, 0xc3});  // pop %rax; ret
  const Walk walk = w.walk_of(1, 2);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{w.kPc, kInnerMethodPc, kOuterMethodPc, kCallerOfMethodsPc});
}

TEST_CASE("a stub to which a jump led is left by what is behind a call, if it pushed nothing") {
  StubWorld w;
  w.memory.put_call(kInnerMethodPc, kArea + 0x100);
  CHECK(end_of(w.walk_of(0, 0)) == "root");
  CHECK(pcs(w.walk_of(1, 0)) == Pcs{w.kPc});
}

TEST_CASE("a stub and its arguments have 16 words on the stack at the most") {
  StubWorld w;
  w.memory.put_call(kInnerMethodPc, w.kStub);
  CHECK(w.walk_of(15, 0).is_complete());
  CHECK_FALSE(w.walk_of(16, 0).is_complete());
}

TEST_CASE("a word on top of a method's stack that looks like a call's is none of a stub's") {
  // Where its frame is found it is believed first; where a method cannot be left so, a jump may
  // have led to a stub, which has no frame, from what was called.
  CompiledCodeWorld w;
  std::vector<uint64_t> words{kOuterMethodPc, 0, 0, 0, 77, kOuterMethodPc};
  push_frame(words, at(kCallerOfMethodsPc));
  CHECK(pcs(w.walk(words, 42)) == Pcs{kInnerMethodPc, kOuterMethodPc, kCallerOfMethodsPc});
}

TEST_CASE("a stub that the virtual machine called itself is left by its return") {
  CompiledCodeWorld w;
  constexpr uint64_t kStubPc = kArea + 0x10;      // of ICache: before all methods
  w.memory.put(kStubPc, {0x48, 0x83, 0xc7, 0x40,  // add $0x40,%rdi
                         0xff, 0xce, 0x75, 0xf5,  // dec %esi; jne
                         0x0f, 0xae, 0xf0,        // mfence
                         0x48, 0x8b, 0xc2,        // mov %rdx,%rax
                         0xc3});
  // Below the caller's frame record stand words that are not the interpreter's.
  const std::vector<uint64_t> words{at(kCallerOfMethodsPc), 0,         77, address_of_word(9),
                                    address_of_word(12),    at(0x4080)};
  const Walk walk = w.walk(words, address_of_word(4), kStubPc);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kStubPc, kCallerOfMethodsPc});
  // Code that no file holds may have such an address on top of the stack by chance.
  std::vector<uint64_t> by_chance = words;
  by_chance[0] = kInterpreterPc;
  CHECK(pcs(w.walk(by_chance, address_of_word(4), kStubPc)) == Pcs{kStubPc});
}

TEST_CASE("a stub is of less than 1 KiB") {
  StubWorld w;
  w.memory.put_call(kInnerMethodPc, w.kStub);
  std::vector<uint64_t> words{77, kInnerMethodPc};
  push_frame(words, kOuterMethodPc);
  push_frame(words, at(kCallerOfMethodsPc));
  for (const uint64_t offset : {1023, 1024}) {
    const uint64_t pc = w.kStub + offset;
    w.memory.put(pc, {0x75, 0x00, 0x90, 0x90});
    CHECK(w.walk(words, 42, pc).is_complete() == (offset == 1023));
  }
}

TEST_CASE("a call that leads to the function before a stub, or behind it, is none of the stub's") {
  StubWorld w;
  w.memory.put_call(kInnerMethodPc,
                    GENERATE(uint64_t{kOuterMethod}, StubWorld::kPc + 1, kOuterMethod - 0x20));
  CHECK(pcs(w.walk_of(1, 0)) == Pcs{w.kPc});
}
