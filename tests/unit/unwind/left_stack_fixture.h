// Go that called C: the C code's stack was copied, the goroutine's can only be read.
#pragma once

#include "walk_fixture.h"

#include <vector>

namespace sentry_prof::test {

inline constexpr uint64_t kLeafInC = 0x1010;
inline constexpr uint64_t kCalledByGo = 0x2000;  // where the C function begins that Go calls
inline constexpr uint64_t kInCalledByGo = 0x2050;
inline constexpr uint64_t kInChanger = 0x3050;     // asmcgocall, behind its call
inline constexpr uint64_t kCallsChanger = 0x5050;  // cgocall
inline constexpr uint64_t kCallsC = 0x6050;
inline constexpr uint64_t kCallsCElsewhere = 0x6070;
inline constexpr uint64_t kGoRoot = 0x4001;  // goexit, behind its first byte
inline constexpr uint64_t kGoFramePointer = 0xc000'0000'9100;

struct LeftStackWorld : World {
  LeftStackWorld() {
    add_c(0x1000, row_with_cfa(kRsp, 8));
    add_c(kCalledByGo, row_with_cfa(kRsp, 16));
    cfi.add(0x3000, 0x3100, RowStatus::OtherStack);
    cfi.add(0x4000, 0x4100, RowStatus::Root);
    // `sub $0x30, %rsp; lea 0x28(%rsp), %rbp`
    cfi.add(0x5000, 0x5100, saving(row_with_cfa(kRsp, 0x38), kRbp, -16));
    cfi.add(0x6000, 0x6100, row_with_cfa(kRsp, 16));
    cfi.framed_begin = 0x3000;
    cfi.framed_end = 0x7000;
    code.put_call(kCallsChanger, 0x3000);
    goroutine_calls(kCallsC);
  }

  void add_c(uint64_t begin, Row row) {
    row.function_begin = {begin};
    cfi.add(begin, begin + 0x100, row);
  }

  // From kLeftFrameReach_bytes below the frame pointer on.
  uint64_t& goroutine(uint64_t address) {
    return words[(address - kGoFramePointer + kLeftFrameReach_bytes) / 8];
  }
  void goroutine_calls(uint64_t caller, uint64_t callee = kCalledByGo) {
    words.assign(kLeftFrameReach_bytes / 8 + 8, 0);
    const uint64_t slot = kGoFramePointer - 0x30;
    goroutine(slot) = at(kCallsChanger);
    goroutine(slot + 8) = at(callee);
    goroutine(kGoFramePointer + 8) = at(caller);
    goroutine(kGoFramePointer + 24) = at(kGoRoot);
  }

  Walk walk_of_sample() {
    const FakeStack stack(0x7000, {at(kInCalledByGo), 0, at(kInChanger), 0});
    return World::walk(registers_at(at(kLeafInC), 0x7000, kGoFramePointer), stack);
  }

  std::vector<uint64_t> words;  // of the goroutine's stack now
};

}  // namespace sentry_prof::test
