// The small world that the tests of the walk share: one image with CFI, one without, one JIT area.
#pragma once

#include "support/fake_cfi.h"
#include "unwind/walk.h"

#include <string>
#include <vector>

namespace sentry_prof::test {

using namespace sentry_prof::unwind;

inline constexpr uint64_t kBias = 0x550000000000;
inline constexpr ImageId kProgram = 1, kLibraryWithoutCfi = 2;

// Link addresses 0x1000-0x9000 of the program lie at kBias + them; its rows are `cfi`.
struct World {
  World() {
    modules.insert({{kBias + 0x1000}, {kBias + 0x9000}, {kBias}, kProgram, &cfi, &code});
    modules.insert({{kBias + 0x10000}, {kBias + 0x11000}, {kBias}, kLibraryWithoutCfi, nullptr});
    modules.insert({{kBias + 0x20000}, {kBias + 0x21000}, {}, kNoImage, nullptr});
  }

  Walk walk(const Registers& registers, const FakeStack& stack) {
    return unwinder.walk(registers, stack, modules);
  }

  FakeCfi cfi;
  FakeCode code;    // the program's
  FakeCode memory;  // the JIT area's
  ModuleMap modules;
  Unwinder unwinder{Arch::X86_64, kDefaultRuleCache_bytes, &memory};
};

inline uint64_t at(uint64_t link_pc) { return kBias + link_pc; }

inline std::vector<uint64_t> pcs(const Walk& walk) {
  std::vector<uint64_t> result;
  for (const WalkedFrame& frame : walk.frames) result.push_back(frame.pc);
  return result;
}

inline std::vector<FrameOrigin> origins(const Walk& walk) {
  std::vector<FrameOrigin> result;
  for (const WalkedFrame& frame : walk.frames) result.push_back(frame.origin);
  return result;
}

inline std::string end_of(const Walk& walk) { return std::string(name_of(walk.end)); }

}  // namespace sentry_prof::test
