// HotSpot's compiled functions, by how they begin. The bytes are of JDK 17 and 25.
#include "unwind/rule_from_prologue.h"

#include "rule_fixture.h"
#include "support/catch2.h"

#include <initializer_list>

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

using Code = std::initializer_list<int>;

constexpr uint64_t kVerifiedEntry = 0x20000;
constexpr uint64_t kEnd = kVerifiedEntry + kPrologueReach_bytes + 0x200;

const Code kBanging{0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff,  // 0: mov %eax,-0x14000(%rsp)
                    0x55,                                      // 7: push %rbp
                    0x48, 0x83, 0xec, 0x30};                   // 8: sub $0x30,%rsp
const Code kStoring{0x48, 0x81, 0xec, 0x18, 0x00, 0x00, 0x00,  // 0: sub $0x18,%rsp
                    0x48, 0x89, 0x6c, 0x24, 0x10};             // 7: mov %rbp,0x10(%rsp)
// Before it, nothing but nop.
struct CompiledFunction {
  explicit CompiledFunction(Code prologue) {
    for (uint64_t at = 0x1000; at < kEnd; ++at) code.put(at, {0x90});
    code.put(kVerifiedEntry, prologue);
  }

  CompactRule at(uint64_t offset, bool pc_is_exact = true) {
    work = 0;
    const auto rule = rule_from_prologue(code, {}, {kVerifiedEntry + offset}, pc_is_exact, work);
    REQUIRE(rule);
    return *rule;
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

TEST_CASE("a function that keeps its frame pointer as well is left by its prologue, too") {
  CompiledFunction f({0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                      0x48, 0x8b, 0xec,                                // mov %rsp,%rbp
                      0x48, 0x83, 0xec, 0x40});                        // sub $0x40,%rsp
  CHECK(f.at(8) == framed(2));
  CHECK(f.at(11) == framed(2));
  CHECK(f.at(15) == framed(10));
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
  CHECK(is_none(nothing.at(500)));
  CompiledFunction keeps_fp({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20});
  CHECK(is_none(keeps_fp.at(500)));
  // Nor, by one's of HotSpot farther away.
  keeps_fp.code.put(kVerifiedEntry - 500, kBanging);
  CHECK(is_none(keeps_fp.at(500)));
  CompiledFunction no_bang({0x89, 0x84, 0x24, 0x10, 0xc0, 0xfe, 0xff, 0x55,  // not in whole pages
                            0x48, 0x83, 0xec, 0x30});
  CHECK(is_none(no_bang.at(500)));
  CompiledFunction other_store({0x48, 0x81, 0xec, 0x18, 0x00, 0x00, 0x00,  //
                                0x48, 0x89, 0x6c, 0x24, 0x08});            // not at its end
  CHECK(is_none(other_store.at(500)));
  CompiledFunction negative({0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55,  //
                             0x48, 0x83, 0xec, 0xf8});                        // sub $-8,%rsp
  CHECK(is_none(negative.at(500)));
}

TEST_CASE("a function's beginning is looked for so far and no farther") {
  CompiledFunction f(kBanging);
  CHECK(f.at(kPrologueReach_bytes) == framed(8));
  const uint32_t work = f.work;
  CHECK(is_none(f.at(kPrologueReach_bytes + 100)));
  CHECK(f.work < 2 * work);
  CHECK(f.work < 10'000);
}

TEST_CASE("near the ends of what can be read, less of it is, and what cannot be is not known") {
  FakeCode code;
  for (uint64_t at = 0; at < 400; ++at) code.put(kFunctionBegin + at, {0x90});
  code.put(kFunctionBegin + 100, kBanging);
  uint32_t work = 0;
  LinkAddress code_begin;
  const auto rule_at = [&](uint64_t pc, bool pc_is_exact) {
    return rule_from_prologue(code, code_begin, {pc}, pc_is_exact, work);
  };
  CHECK(rule_at(kFunctionBegin + 250, true) == framed(8));
  CHECK(rule_at(kFunctionBegin + 250, false) == framed(8));
  CHECK(rule_at(kFunctionBegin + 99, true) == from_sp(1));
  CHECK(rule_at(kFunctionBegin + 99, false) == std::nullopt);
  // Whether the pc is ahead of a function.
  CHECK(rule_at(kFunctionBegin + 350, true) == std::nullopt);
  CHECK(rule_at(kFunctionBegin + 350, false) == framed(8));
  CHECK(rule_at(0, true) == std::nullopt);
  CHECK(is_none(rule_at(0, false).value()));
  CHECK(rule_at(UINT64_MAX, true) == std::nullopt);
  CHECK(rule_at(UINT64_MAX, false) == std::nullopt);
  // There is none before the code's beginning.
  code_begin = {kFunctionBegin};
  CHECK(is_none(rule_at(kFunctionBegin + 99, false).value()));
  CHECK(is_none(rule_at(kFunctionBegin + 3, false).value()));
  code_begin = {kFunctionBegin + 100};
  CHECK(rule_at(kFunctionBegin + 250, false) == framed(8));
  code_begin = {kFunctionBegin + 101};
  CHECK(is_none(rule_at(kFunctionBegin + 250, false).value()));
}
