// HotSpot's compiled functions, by how they begin. The bytes are of JDK 17 and 25.
#include "unwind/prologue.h"

#include "rule_fixture.h"
#include "support/catch2.h"

#include <initializer_list>

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

using Code = std::initializer_list<int>;
using Kind = Prologue::Kind;

constexpr uint64_t kVerifiedEntry = 0x40000;
constexpr uint64_t kPrologueCodeEnd = kVerifiedEntry + kPrologueReach_bytes + 0x200;

const Code kBanging{0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff,  // 0: mov %eax,-0x14000(%rsp)
                    0x55,                                      // 7: push %rbp
                    0x48, 0x83, 0xec, 0x30};                   // 8: sub $0x30,%rsp
const Code kStoring{0x48, 0x81, 0xec, 0x18, 0x00, 0x00, 0x00,  // 0: sub $0x18,%rsp
                    0x48, 0x89, 0x6c, 0x24, 0x10};             // 7: mov %rbp,0x10(%rsp)
// Before it, nothing but nop.
struct CompiledFunction {
  explicit CompiledFunction(Code prologue) {
    for (uint64_t at = 0x1000; at < kPrologueCodeEnd; ++at) code.put(at, {0x90});
    code.put(kVerifiedEntry, prologue);
  }

  Prologue find(uint64_t offset, bool pc_is_exact = true) {
    work = 0;
    const Prologue found = find_prologue(code, {}, {kVerifiedEntry + offset}, pc_is_exact, work);
    REQUIRE(found.kind != Kind::Unread);
    return found;
  }
  CompactRule at(uint64_t offset, bool pc_is_exact = true) {
    return find(offset, pc_is_exact).rule;
  }

  FakeCode code;
  uint32_t work = 0;
};

CompactRule framed(int16_t cfa_words) { return saving_fp(from_sp(cfa_words), -2); }

}  // namespace

TEST_CASE("a function that touches the stack ahead has its frame from its prologue on") {
  CompiledFunction f(kBanging);
  CHECK(f.at(0) == from_sp(1));
  CHECK(f.at(7) == from_sp(1));
  CHECK(f.at(8) == framed(2));
  CHECK(f.at(12) == framed(8));
  CHECK(f.at(3000) == framed(8));
  CHECK(f.work > 0);
  CHECK(f.find(11).kind == Kind::Edge);
  CHECK(f.find(12).kind == Kind::Frame);
  for (const uint64_t offset : {0, 3000}) CHECK(f.find(offset).begin.value == kVerifiedEntry);
  CHECK_FALSE(f.find(3000).keeps_frame_pointer);
}

TEST_CASE("large frames have their size in four bytes") {
  CompiledFunction f({0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                      0x48, 0x81, 0xec, 0xb0, 0x00, 0x00, 0x00});      // sub $0xb0,%rsp
  CHECK(f.at(14) == framed(2));
  CHECK(f.at(15) == framed(24));
}

TEST_CASE("a function that calls none stores the frame pointer") {
  CompiledFunction f(kStoring);
  CHECK(f.at(0) == from_sp(1));
  CHECK(f.at(7) == from_sp(4));
  CHECK(f.at(12) == framed(4));
  CHECK(f.at(200) == framed(4));
}

TEST_CASE("frames of the least size have no displacement, or nothing to make room for") {
  // OptoRuntime's stubs: mov %rbp,(%rsp).
  CompiledFunction storing({0x48, 0x81, 0xec, 0x08, 0x00, 0x00, 0x00, 0x48, 0x89, 0x2c, 0x24});
  CHECK(storing.at(7) == from_sp(2));
  CHECK(storing.at(11) == framed(2));
  CHECK(storing.at(200) == framed(2));
  CompiledFunction banging({0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55});
  CHECK(banging.at(7) == from_sp(1));
  CHECK(banging.at(8) == framed(2));
  CHECK(banging.find(8).kind == Kind::Frame);
  CHECK(banging.find(200).kind == Kind::Frame);
  CHECK(banging.at(200) == framed(2));
}

TEST_CASE("a function that keeps its frame pointer as well is left by its prologue, too") {
  CompiledFunction f({0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                      0x48, 0x8b, 0xec,                                // mov %rsp,%rbp
                      0x48, 0x83, 0xec, 0x40});                        // sub $0x40,%rsp
  CHECK(f.at(8) == framed(2));
  CHECK(f.at(11) == framed(2));
  CHECK(f.at(15) == framed(10));
  CHECK_FALSE(f.find(8).keeps_frame_pointer);
  CHECK(f.find(11).keeps_frame_pointer);
  CHECK(f.find(15).keeps_frame_pointer);
  f.code.put(kVerifiedEntry + 1000, {0x48, 0x83, 0xc4, 0x40, 0x5d, 0xc3});  // add, pop, ret
  CHECK(f.find(1000).kind == Kind::Edge);
  CHECK(f.find(1000).keeps_frame_pointer);
}

TEST_CASE("a function that is not to be entered any more begins with a jump") {
  CompiledFunction banging({0xe9, 0x1b, 0xf4, 0x53, 0x07, 0xfe, 0xff, 0x55,  //
                            0x48, 0x81, 0xec, 0xb0, 0x00, 0x00, 0x00});
  CHECK(banging.at(0) == from_sp(1));
  CHECK(banging.at(100) == framed(24));
  CompiledFunction storing({0xe9, 0x1b, 0xf4, 0x53, 0x07, 0x00, 0x00,  //
                            0x48, 0x89, 0x6c, 0x24, 0x10});
  CHECK(storing.at(100) == framed(4));
}

TEST_CASE("where the receiver's class is checked, ahead of the function, there is no frame") {
  CompiledFunction f(kBanging);
  CHECK(f.at(uint64_t{0} - 32) == from_sp(1));
  // Also behind another function.
  f.code.put(kVerifiedEntry - 1000, {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                                     0x48, 0x83, 0xec, 0x70});
  CHECK(f.at(uint64_t{0} - 32) == from_sp(1));
  CHECK(f.at(uint64_t{0} - 200) == framed(16));
  CHECK(f.at(100) == framed(8));
  // A return address is in the function that made the call.
  CHECK(f.at(uint64_t{0} - 32, false) == framed(16));
}

TEST_CASE("where the frame is taken down, what is left of it counts") {
  CompiledFunction f(kBanging);
  f.code.put(kVerifiedEntry + 1000, {
                                        0x48, 0x83, 0xc4, 0x30,                    // add $0x30,%rsp
                                        0x5d,                                      // pop %rbp
                                        0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00, 0x00,  // cmp, %rsp
                                        0x0f, 0x87, 0x01, 0x00, 0x00, 0x00,        // ja
                                        0xc3,                                      // ret
                                    });
  CHECK(f.at(1000) == framed(8));
  CHECK(f.find(1000).kind == Kind::Edge);
  CHECK(f.find(1000).begin.value == kVerifiedEntry);
  CHECK(f.at(1004) == framed(2));
  CHECK(f.at(1005) == from_sp(1));
  CHECK(f.at(1012) == from_sp(1));
  CHECK(f.at(1018) == from_sp(1));
  CHECK(f.at(1019) == framed(8));
  f.code.put(kVerifiedEntry + 1000, {0x41, 0xff, 0xe2});  // jmp *%r10: by a table
  CHECK(f.at(1000) == framed(8));
}

TEST_CASE("code of others has no rule by its beginning") {
  CompiledFunction nothing({0x90});
  CHECK(nothing.find(500).kind == Kind::NoneNear);
  CompiledFunction keeps_fp({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20});
  CHECK(keeps_fp.find(500).kind == Kind::FramePointerKept);
  CHECK(keeps_fp.find(500).begin.value == kVerifiedEntry);
  // Nor, by one's of HotSpot farther away.
  keeps_fp.code.put(kVerifiedEntry - 500, kBanging);
  CHECK(keeps_fp.find(500).kind == Kind::FramePointerKept);
  CompiledFunction no_bang({0x89, 0x84, 0x24, 0x10, 0xc0, 0xfe, 0xff, 0x55,  // not in whole pages
                            0x48, 0x83, 0xec, 0x30});
  CHECK(no_bang.find(500).kind == Kind::NoneNear);
  CompiledFunction other_store({0x48, 0x81, 0xec, 0x18, 0x00, 0x00, 0x00,  //
                                0x48, 0x89, 0x6c, 0x24, 0x08});            // not at its end
  CHECK(other_store.find(500).kind == Kind::NoneNear);
  CompiledFunction negative_behind_bang({0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                                         0x48, 0x83, 0xec, 0xf8});
  CHECK(negative_behind_bang.find(500).kind == Kind::NoneNear);
  CompiledFunction too_large({0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                              0x48, 0x81, 0xec, 0x08, 0x00, 0x02, 0x00});
  CHECK(too_large.find(500).kind == Kind::NoneNear);
  CHECK(too_large.at(8) == framed(2));  // not made yet
  // Nor has the function before it anything to say.
  too_large.code.put(kVerifiedEntry - 500, kBanging);
  CHECK(too_large.find(500).kind == Kind::NoneNear);
  CompiledFunction negative({0x48, 0x81, 0xec, 0xf8, 0xff, 0xff, 0xff,  // sub $-8,%rsp
                             0x48, 0x89, 0x6c, 0x24, 0xf0});
  CHECK(negative.find(500).kind == Kind::NoneNear);
}

TEST_CASE("a function's beginning is looked for so far and no farther") {
  CompiledFunction f(kBanging);
  CHECK(f.at(kPrologueReach_bytes) == framed(8));
  const uint32_t work = f.work;
  CHECK(f.find(kPrologueReach_bytes + 100).kind == Kind::NoneNear);
  CHECK(f.work < 2 * work);
  CHECK(f.work < 20'000);
}

TEST_CASE("near the ends of what can be read, less of it is, and what cannot be is not known") {
  FakeCode code;
  for (uint64_t at = 0; at < 400; ++at) code.put(kFunctionBegin + at, {0x90});
  code.put(kFunctionBegin + 100, kBanging);
  uint32_t work = 0;
  LinkAddress code_begin;
  const auto at = [&](uint64_t pc, bool pc_is_exact) {
    return find_prologue(code, code_begin, {pc}, pc_is_exact, work);
  };
  CHECK(at(kFunctionBegin + 250, true).rule == framed(8));
  CHECK(at(kFunctionBegin + 250, false).rule == framed(8));
  CHECK(at(kFunctionBegin + 99, true).rule == from_sp(1));
  CHECK(at(kFunctionBegin + 99, false).kind == Kind::Unread);
  // Whether the pc is ahead of a function.
  CHECK(at(kFunctionBegin + 350, true).kind == Kind::Unread);
  CHECK(at(kFunctionBegin + 350, false).rule == framed(8));
  CHECK(at(0, true).kind == Kind::Unread);
  CHECK(at(0, false).kind == Kind::NoneNear);
  CHECK(at(UINT64_MAX, true).kind == Kind::Unread);
  CHECK(at(UINT64_MAX, false).kind == Kind::Unread);
  // There is none before the code's beginning.
  code_begin = {kFunctionBegin};
  CHECK(at(kFunctionBegin + 99, false).kind == Kind::NoneNear);
  CHECK(at(kFunctionBegin + 3, false).kind == Kind::NoneNear);
  code_begin = {kFunctionBegin + 100};
  CHECK(at(kFunctionBegin + 250, false).rule == framed(8));
  code_begin = {kFunctionBegin + 101};
  CHECK(at(kFunctionBegin + 250, false).kind == Kind::NoneNear);
}
