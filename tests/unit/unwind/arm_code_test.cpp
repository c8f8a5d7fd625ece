// What is read of aarch64 code; the instructions are GNU as's.
#include "unwind/arm_code.h"

#include "support/catch2.h"
#include "support/fake_cfi.h"

#include <optional>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::unwind;

namespace {

constexpr uint64_t kArmFunction = 0x1000;
constexpr uint32_t kArmRet = 0xd65f03c0, kArmNop = 0xd503201f;

void put_arm(test::FakeCode& code, uint64_t begin, const std::vector<uint32_t>& instructions) {
  for (const uint32_t instruction : instructions) {
    for (int shift = 0; shift < 32; shift += 8) {
      code.put(begin++, {static_cast<int>(instruction >> shift & 0xff)});
    }
  }
}

// How far the epilogue moves the stack pointer; none if it is none.
std::optional<int> epilogue_bytes(const std::vector<uint32_t>& instructions) {
  test::FakeCode code;
  put_arm(code, kArmFunction, instructions);
  uint32_t work = 0;
  const CompactRule rule = rule_of_epilogue(code, {kArmFunction}, work);
  CHECK(work >= kReadCodeWork);
  if (rule.kind == CompactKind::NoCfi) return std::nullopt;
  CHECK(rule.kind == CompactKind::LinkFromSp);
  CHECK(rule.fp == CompactFp::Same);
  return rule.cfa_words * 8;
}

bool keeps_none(const std::vector<uint32_t>& instructions) {
  test::FakeCode code;
  put_arm(code, kArmFunction, instructions);
  uint32_t work = 0;
  return keeps_no_link_register(code, {kArmFunction}, {kArmFunction + 4 * instructions.size()},
                                work);
}

}  // namespace

TEST_CASE("an epilogue restores other registers, gives its room back and returns") {
  CHECK(epilogue_bytes({kArmRet}) == 0);
  CHECK(epilogue_bytes({0xd65f0bff}) == 0);           // retaa
  CHECK(epilogue_bytes({0xd50323bf, kArmRet}) == 0);  // autiasp
  CHECK(epilogue_bytes({0xa9424ff4, 0x910e43ff, kArmRet}) ==
        0x390);                                                     // ldp x20, x19, [sp, #32]; add
  CHECK(epilogue_bytes({0x914007ff, kArmRet}) == 0x1000);           // add sp, sp, #1, lsl #12
  CHECK(epilogue_bytes({0xa8c66ffc, 0x6cc123e9, kArmRet}) == 112);  // ldp [sp], #96; ldp d, #16
  CHECK(epilogue_bytes({0x6d4423e9, 0xfd400be8, kArmRet}) == 0);    // ldp d, [sp, #64]; ldr d
  CHECK(epilogue_bytes({0xf84207f3, 0xfc4107e8, kArmRet}) == 48);   // ldr [sp], #32; ldr d, #16
}

TEST_CASE("what has still to restore the caller's record, or does anything else, is no epilogue") {
  for (const uint32_t instruction : {0xa8c37bfdu,  // ldp x29, x30, [sp], #48
                                     0xf84107feu,  // ldr x30, [sp], #16
                                     0x910003bfu,  // mov sp, x29
                                     0xa9424c14u,  // ldp x20, x19, [x0, #32]
                                     0xa9bd7bfdu,  // stp x29, x30, [sp, #-48]!
                                     0x14000000u,  // b
                                     0xd65f0020u,  // ret x1
                                     kArmNop}) {
    CAPTURE(instruction);
    CHECK_FALSE(epilogue_bytes({instruction, kArmRet}));
  }
  CHECK_FALSE(epilogue_bytes({0xa9424ff4}));                            // the rest is not there
  CHECK_FALSE(epilogue_bytes(std::vector<uint32_t>(100, 0xa9424ff4)));  // does not end
  CHECK_FALSE(epilogue_bytes({0xf84047f3, kArmRet}));                   // ldr [sp], #4
}

TEST_CASE("code that keeps the link register in memory, in whatever form, is told") {
  for (const uint32_t instruction : {0xa9bd7bfdu,     // stp x29, x30, [sp, #-48]!
                                     0xf81f0ffeu,     // str x30, [sp, #-16]!
                                     0xf900041eu,     // str x30, [x0, #8]
                                     0xf81fd01eu,     // stur x30, [x0, #-3]
                                     0xf822683eu,     // str x30, [x1, x2]
                                     0xa9014ffeu,     // stp x30, x19, [sp, #16]
                                     0xa8007820u}) {  // stnp x0, x30, [x1]
    CAPTURE(instruction);
    CHECK_FALSE(keeps_none({kArmNop, instruction, kArmNop}));
  }
  CHECK(keeps_none({kArmNop, 0xf90007fd, 0xa90153f3, 0xf84107fe}));  // str x29; stp; ldr x30
}

TEST_CASE("of code that cannot be read, or is none, nothing is known of the link register") {
  test::FakeCode code;
  put_arm(code, kArmFunction, std::vector<uint32_t>(2000, kArmNop));
  uint32_t work = 0;
  const auto ask = [&](uint64_t begin, uint64_t pc) {
    return keeps_no_link_register(code, {begin}, {pc}, work);
  };
  CHECK(ask(kArmFunction, kArmFunction + 4096));
  CHECK_FALSE(ask(kArmFunction, kArmFunction + 4100));
  CHECK_FALSE(ask(kArmFunction, kArmFunction));
  CHECK_FALSE(ask(kArmFunction + 8, kArmFunction));
  CHECK_FALSE(ask(kArmFunction, kArmFunction + 6));
  CHECK_FALSE(ask(kArmFunction - 4, kArmFunction + 4));
  CHECK(work >= kReadCodeWork + 1024);
}
