// Code without unwind information that does not return, so that its own instructions lead out of it
// only from where it begins.
#include "support/catch2.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

constexpr uint64_t kLeafOfNoReturn = 0x2010;
// Both push %rbx, make room for a word and call what does not return; what comes then, another
// function, tells nothing of the stack.
constexpr uint64_t kFunction = 0x5000, kInFunction = kFunction + 10;
constexpr uint64_t kOuterFunction = 0x5100, kInOuterFunction = kOuterFunction + 10;
constexpr uint64_t kRootCaller = 0x4050, kElsewhere = 0x4080, kOtherCaller = 0x40a0;

struct NoReturn : World {
  NoReturn() {
    cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 8));
    cfi.add(0x4000, 0x4100, root_row());
    for (const uint64_t return_address : {kRootCaller, kElsewhere, kOtherCaller}) {
      code.put(return_address - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
    }
    for (const uint64_t begin : {kFunction, kOuterFunction}) {
      code.put(begin, {0x53, 0x48, 0x83, 0xec, 0x08});       // push %rbx; sub $8,%rsp
      code.put(begin + 10, {0x48, 0x83, 0xe4, 0xf0, 0xc3});  // and $-16,%rsp; ret
    }
    put_direct_call(kInFunction, 0x2000);
    put_direct_call(kInOuterFunction, kFunction);
  }

  // Over the last five bytes before it.
  void put_direct_call(uint64_t return_address, uint64_t target) {
    const auto offset = static_cast<uint32_t>(target - return_address);
    code.put(return_address - 5, {0xe8});
    for (unsigned i = 0; i < 4; ++i) {
      code.put(return_address - 4 + i, {static_cast<int>((offset >> (8 * i)) & 0xff)});
    }
  }

  void call_by_pointer(uint64_t return_address) {
    code.put(return_address - 5, {0x90, 0x90, 0x90, 0xff, 0xd0});  // nops; call *%rax
  }

  Walk walk_words(const std::vector<uint64_t>& words, uint64_t fp = 1) {
    return World::walk(registers_at(at(kLeafOfNoReturn), 0x7000, fp), FakeStack(0x7000, words));
  }
};

// The leaf's return address, and the frame of what it returns to: two words.
std::vector<uint64_t> stack_of(std::vector<uint64_t> rest) {
  rest.insert(rest.begin(), {at(kInFunction), 0, 0});
  return rest;
}

}  // namespace

TEST_CASE("a function that does not return is left by the call that leads to its beginning") {
  NoReturn w;
  w.put_direct_call(kRootCaller, kFunction);
  for (int i = 0; i < 2; ++i) {  // by the cached rule, the second time
    const Walk walk = w.walk_words(stack_of({at(kRootCaller)}));
    CHECK(pcs(walk) == Pcs{kLeafOfNoReturn, kInFunction, kRootCaller});
    CHECK(origins(walk) == std::vector{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::Code});
    CHECK(end_of(walk) == "root");
  }
}

TEST_CASE("a call that leads elsewhere, or whose return address lies elsewhere, is passed over") {
  NoReturn w;
  w.put_direct_call(kRootCaller, kFunction);
  CHECK(pcs(w.walk_words({at(kInFunction), 0, at(kRootCaller)})) ==
        Pcs{kLeafOfNoReturn, kInFunction});
  NoReturn elsewhere;
  elsewhere.put_direct_call(kRootCaller, 0x3000);
  CHECK(pcs(elsewhere.walk_words(stack_of({at(kRootCaller)}))) ==
        Pcs{kLeafOfNoReturn, kInFunction});
}

TEST_CASE("main is called by a pointer, and its beginning is what the start code hands over") {
  NoReturn unknown;
  unknown.call_by_pointer(kRootCaller);
  CHECK(pcs(unknown.walk_words(stack_of({at(kRootCaller)}))) == Pcs{kLeafOfNoReturn, kInFunction});
  NoReturn w;
  w.call_by_pointer(kRootCaller);
  w.code.entry = {0x6000};
  w.code.put(0x6000, {0x48, 0x8d, 0x3d, 0xf9, 0xef, 0xff, 0xff, 0xf4});  // lea -0x1007(%rip),%rdi
  CHECK(pcs(w.walk_words(stack_of({at(kRootCaller)}))) ==
        Pcs{kLeafOfNoReturn, kInFunction, kRootCaller});
  CHECK(pcs(w.walk_words({at(kInFunction), 0, at(kRootCaller)})) ==
        Pcs{kLeafOfNoReturn, kInFunction});
}

TEST_CASE("start code that does not tell of main is read once for all calls by pointers") {
  const auto reads_with = [](size_t calls) {
    NoReturn w;
    w.call_by_pointer(kRootCaller);
    w.code.entry = {0x6000};
    w.code.put(0x6000, {0xf4});
    w.walk_words(stack_of(std::vector<uint64_t>(calls, at(kRootCaller))));
    return w.code.reads();
  };
  CHECK(reads_with(100) == reads_with(1));
}

// It does not say where it led, and a chain of leftovers would do as well.
TEST_CASE("a call by a pointer in a frame of its own proves no caller") {
  NoReturn w;
  w.call_by_pointer(kInOuterFunction);
  w.put_direct_call(kRootCaller, kOuterFunction);
  const std::vector<uint64_t> words = stack_of({at(kInOuterFunction), 0, 0, at(kRootCaller)});
  CHECK(pcs(w.walk_words(words)) == Pcs{kLeafOfNoReturn, kInFunction});
}

TEST_CASE("where a caller was looked for in vain it is looked for again more and more seldom") {
  NoReturn w;
  for (int i = 0; i < 4; ++i) w.walk_words(stack_of({0}));
  const int reads = w.code.reads();
  for (int i = 0; i < 3; ++i) w.walk_words(stack_of({0}));
  CHECK(w.code.reads() == reads);
  w.put_direct_call(kRootCaller, kFunction);
  size_t found = 0;
  for (int i = 0; i < 256; ++i)
    found += pcs(w.walk_words(stack_of({at(kRootCaller)}))).size() == 3 ? 1 : 0;
  CHECK(found > 200);  // from the next look on
}

TEST_CASE("a search for callers leaves work for the frames outside, however much it could do") {
  NoReturn w;
  w.call_by_pointer(kRootCaller);
  // Each word is behind a call to a beginning of its own, from which all of a long way is read.
  for (uint64_t i = 0; i < 3000; ++i) w.code.put(0x5800 + i, {0x90});
  std::vector<uint64_t> words = stack_of({});
  for (uint64_t i = 0; i < 200; ++i) {
    w.put_direct_call(0x7000 + 8 * i, 0x5800 + i);
    words.push_back(at(0x7000 + 8 * i));
  }
  const uint64_t frame_record = 0x7000 + 8 * words.size();
  words.insert(words.end(), {0, at(kRootCaller)});
  const Walk walk = w.walk_words(words, frame_record);
  CHECK(pcs(walk) == Pcs{kLeafOfNoReturn, kInFunction, kRootCaller});
  CHECK(end_of(walk) == "root");
}

TEST_CASE("a frame pointer of 0 is no root below the calls of its callers") {
  NoReturn w;
  w.put_direct_call(kElsewhere, 0x3000);
  CHECK(end_of(w.walk_words(stack_of({0, 0}), 0)) == "root");
  CHECK(end_of(w.walk_words(stack_of({0, at(kElsewhere)}), 0)) == "no_unwind_info");
}

TEST_CASE("a frame pointer of 0 is no root below calls, however large the frame, or by a pointer") {
  NoReturn w;
  w.put_direct_call(kElsewhere, 0x3000);
  std::vector<uint64_t> large = stack_of(std::vector<uint64_t>(600, 0));  // char buffer[4800]
  CHECK(end_of(w.walk_words(large, 0)) == "root");
  large.push_back(at(kElsewhere));
  CHECK(end_of(w.walk_words(large, 0)) == "no_unwind_info");
  w.call_by_pointer(kOtherCaller);
  CHECK(end_of(w.walk_words(stack_of({0, at(kOtherCaller), at(kElsewhere)}), 0)) ==
        "no_unwind_info");
}

TEST_CASE("the only call above a frame pointer of 0 is the caller's, if it was by a pointer") {
  constexpr uint64_t kInFirst = 0x5310;  // as in musl's __clone, without rows
  NoReturn w;
  w.code.put(kInFirst - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xf4});  // nops; hlt
  w.call_by_pointer(kInFirst);
  w.code.put(kFunction - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
  const Walk walk = w.walk_words(stack_of({at(kInFirst), at(kFunction), 0}), 0);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kLeafOfNoReturn, kInFunction, kInFirst});
}

TEST_CASE("a frame pointer of 0 is no root below what was not copied") {
  NoReturn w;
  const std::vector<uint64_t> words = stack_of(std::vector<uint64_t>(600, 0));
  const auto end_with = [&](StackSnapshot::Behind behind) {
    return end_of(w.unwinder.walk(registers_at(at(kLeafOfNoReturn), 0x7000, 0),
                                  StackSnapshot({0x7000}, std::as_bytes(std::span(words)), behind),
                                  w.modules));
  };
  CHECK(end_with(StackSnapshot::Behind::Unknown) == "root");
  CHECK(end_with(StackSnapshot::Behind::More) == "stack_truncated");
}

TEST_CASE("a frame pointer of 0 is no root below a gap in what was copied") {
  NoReturn w;
  const std::vector<uint64_t> words = stack_of(std::vector<uint64_t>(600, 0)), above = {0, 0};
  const auto end_with_piece_at = [&](uint64_t begin) {
    const std::vector<StackPiece> pieces = {{{begin}, std::as_bytes(std::span(above))}};
    const StackSnapshot stack({0x7000}, std::as_bytes(std::span(words)),
                              StackSnapshot::Behind::Unknown, pieces);
    return end_of(w.unwinder.walk(registers_at(at(kLeafOfNoReturn), 0x7000, 0), stack, w.modules));
  };
  const uint64_t end = 0x7000 + words.size() * sizeof(uint64_t);
  CHECK(end_with_piece_at(end) == "root");
  CHECK(end_with_piece_at(end + 0x1000) == "stack_truncated");
}

TEST_CASE("a frame pointer of 0 is no root below an address of code that cannot be read") {
  NoReturn w;
  w.modules.insert({{0x7f0000001000}, {0x7f0000002000}, {0x7f0000000000}, 7, nullptr});
  CHECK(end_of(w.walk_words(stack_of({0, 0x7f0000003010}), 0)) == "root");  // nothing is there
  CHECK(end_of(w.walk_words(stack_of({0, 0x7f0000001010}), 0)) == "no_unwind_info");
}

TEST_CASE("what a search found, or would find, is not remembered by a thread's memory") {
  NoReturn w;
  w.put_direct_call(kRootCaller, kFunction);
  w.put_direct_call(kElsewhere, 0x3000);
  // In vain, on another stack: so the next ones are not searched.
  for (int i = 0; i < 4; ++i) w.walk_words(stack_of({0}));
  // The frame pointer leads past the caller.
  std::vector<uint64_t> words = stack_of({at(kRootCaller), 0, at(kElsewhere)});
  const FakeStack stack(0x7000, words);
  const Registers leaf = registers_at(at(kLeafOfNoReturn), 0x7000, 0x7000 + 4 * 8);
  WalkMemory memory;
  size_t right = 0;
  for (int i = 0; i < 40; ++i) {
    const Walk walk = w.unwinder.walk(leaf, stack, w.modules, &memory);
    right += pcs(walk) == Pcs{kLeafOfNoReturn, kInFunction, kRootCaller} ? 1 : 0;
  }
  CHECK(right >= 20);  // from the next search on
}

// As where libgcc is about to land: the frame pointer is the landing pad's already.
TEST_CASE("a row that goes by a lost frame pointer gives way to where its function begins") {
  NoReturn w;
  Row row = row_with_cfa(kRbp, 16);
  row.function_begin = {kFunction};
  w.cfi.add(kFunction, kFunction + 0x20, saving(row, kRbp, -16));
  w.call_by_pointer(kRootCaller);
  const std::vector<uint64_t> words = stack_of({at(kRootCaller)});
  CHECK(pcs(w.walk_words(words, 0x100)) == Pcs{kLeafOfNoReturn, kInFunction, kRootCaller});
  w.put_direct_call(kElsewhere, kFunction);
  CHECK(pcs(w.walk_words(stack_of({at(kElsewhere)}), 0x100)) ==
        Pcs{kLeafOfNoReturn, kInFunction, kElsewhere});
  w.put_direct_call(kOtherCaller,
                    kOuterFunction);  // the piece that the FDE covers is not called from there
  CHECK(end_of(w.walk_words(stack_of({at(kOtherCaller)}), 0x100)) == "no_progress");
  CHECK(end_of(w.walk_words(stack_of({at(0x1050)}), 0x100)) == "no_progress");
  row.function_begin = {};
  w.cfi.add(kFunction, kFunction + 0x20, saving(row, kRbp, -16));
  CHECK(end_of(w.walk_words(words, 0x100)) == "no_progress");
}
