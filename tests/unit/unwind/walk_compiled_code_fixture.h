// HotSpot's compiled code and its interpreter, as the tests of both and of stubs have it.
#pragma once

#include "walk_fixture.h"

#include <vector>

namespace sentry_prof::test {

// In the module without an image. Each function's frame is of 0x20 bytes, its caller's frame
// pointer and its return address.
inline constexpr uint64_t kArea = kBias + 0x20000, kArea_bytes = 0x1000;
inline constexpr uint64_t kInnerMethod = kArea + 0x400, kOuterMethod = kArea + 0x600;
inline constexpr uint64_t kInnerMethodPc = kInnerMethod + 0x80,
                          kOuterMethodPc = kOuterMethod + 0x80;
// Behind no call: the interpreter lays such addresses out by hand.
inline constexpr uint64_t kInterpreterPc = kArea + 0x200;
inline constexpr uint64_t kNativePc = kArea + 0x300;  // of a method that keeps frame pointers
inline constexpr uint64_t kCallerOfMethodsPc = 0x4050;
inline constexpr uint64_t kMethodStack = 0x7000;

struct CompiledCodeWorld : World {
  CompiledCodeWorld() {
    cfi.add(0x4000, 0x4100, root_row());
    code.put(kCallerOfMethodsPc - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});  // call *%rax
    for (uint64_t pc = kArea; pc < kArea + kArea_bytes; ++pc) memory.put(pc, {0x90});
    for (const uint64_t function : {kInnerMethod, kOuterMethod}) {
      memory.put(function, {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff,  // mov %eax,-0x14000(%rsp)
                            0x55,                                      // push %rbp
                            0x48, 0x83, 0xec, 0x20});                  // sub $0x20,%rsp
    }
    memory.put_call(kOuterMethodPc, kInnerMethod);
    modules.set_has_hotspot();
  }

  Walk walk(const std::vector<uint64_t>& words, uint64_t fp, uint64_t pc = kInnerMethodPc) {
    return unwinder.walk(registers_at(pc, kMethodStack, fp), FakeStack(kMethodStack, words),
                         modules);
  }
};

inline constexpr uint64_t address_of_word(uint64_t index) { return kMethodStack + 8 * index; }

// A method's frame, which is six words; its caller's frame pointer is the fifth.
inline void push_frame(std::vector<uint64_t>& words, uint64_t return_address,
                       uint64_t caller_fp = 77) {
  words.insert(words.end(), {0, 0, 0, 0, caller_fp, return_address});
}

}  // namespace sentry_prof::test
