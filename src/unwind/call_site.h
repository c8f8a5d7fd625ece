// Whether an address is one that a call returns to: right behind a call instruction.
// Source: Intel SDM, volume 2, chapter 2 (ModR/M, SIB) and "CALL"; Arm ARM, C4.1 ("BL", "BLR",
// "BLRAA").
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "unwind/module_map.h"
#include "unwind/registers.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace sentry_prof::unwind {

enum class CallKind : uint8_t {
  Unknown,   // the code is not at hand
  None,      // no call ends there
  Direct,    // E8, BL: the instruction says where it went
  Indirect,  // FF /2, BLR: through a register or memory
};

struct CallSite {
  CallKind kind = CallKind::Unknown;
  // Direct: the bytes also end an indirect call, which it is if `target_offset` leads to no code.
  bool may_be_indirect = false;
  int32_t target_offset = 0;  // Direct: from the return address to what was called

  // What a direct call went to, in the address space of its return address.
  uint64_t target(uint64_t return_address) const {
    return return_address + static_cast<uint64_t>(int64_t{target_offset});
  }

  bool operator==(const CallSite&) const = default;
};

// The call that ends where `code` ends. x86-64: bytes can be read as more than one instruction; a
// direct call is preferred, as what it says can be compared with where its callee is.
CallSite call_before(Bytes code, Arch arch = Arch::X86_64);

// Remembers what is behind the return addresses that were asked for: 8 KiB, by image and link
// address, so valid for every process. Of two that share a place the later has it. Code that could
// not be read is asked for again.
class CallSites {
 public:
  explicit CallSites(Arch arch = Arch::X86_64) : arch_(arch) {}

  // `runtime_pc` lies behind the first byte of `module`, `code` is the module's. `work` grows by
  // what it cost. Code without an image may become other code: it is looked at each time.
  CallSite before(const Module& module, const CodeSource* code, uint64_t runtime_pc,
                  uint32_t& work);

 private:
  struct Place {
    uint64_t key = 0;  // 0: free
    CallSite site;
  };
  static_assert(sizeof(Place) == 16);
  CallSite read(const Module& module, const CodeSource& source, uint64_t runtime_pc,
                uint32_t& work) const;

  Arch arch_;
  static constexpr unsigned kIndexBits = 9, kIndexShift = 64 - kIndexBits;
  std::array<Place, size_t{1} << kIndexBits> places_{};
};

}  // namespace sentry_prof::unwind
