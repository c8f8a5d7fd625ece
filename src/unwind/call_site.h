// Whether an address is one that a call returns to: right behind a call instruction of x86-64.
// Source: Intel SDM, volume 2, chapter 2 (ModR/M, SIB) and "CALL".
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "unwind/module_map.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace sentry_prof::unwind {

enum class CallKind : uint8_t {
  Unknown,   // the code is not at hand
  None,      // no call ends there
  Direct,    // E8: the instruction says where it went
  Indirect,  // FF /2: through a register or memory
};

struct CallSite {
  CallKind kind = CallKind::Unknown;
  // Direct: the bytes also end an indirect call, which it is if `target_offset` leads to no code.
  bool may_be_indirect = false;
  int32_t target_offset = 0;  // Direct: from the return address to what was called

  bool operator==(const CallSite&) const = default;
};

// Without prefixes, which may stand before: FF /2 with SIB and 32 bits of displacement.
inline constexpr size_t kLongestCall_bytes = 7;

// The call that ends where `code` ends. Bytes can be read as more than one instruction; a direct
// call is preferred, as what it says can be compared with where its callee is.
CallSite call_before(Bytes code);

// Remembers what is behind the return addresses that were asked for: 8 KiB, by image and link
// address, so valid for every process. Of two that share a place the later has it.
class CallSites {
 public:
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
  static constexpr unsigned kIndexBits = 9, kIndexShift = 64 - kIndexBits;
  std::array<Place, size_t{1} << kIndexBits> places_{};
};

}  // namespace sentry_prof::unwind
