// Addresses of code without the signature that aarch64 may put above them.
#pragma once

#include "unwind/module_map.h"

#include <bit>
#include <cstdint>

namespace sentry_prof::unwind {

// What is kept of an aarch64 return address, whose upper bits may be a signature (pointer
// authentication). The kernel gives no mask with a sample (ptrace does: NT_ARM_PAC_MASK), but none
// is needed: the signature lies above all user addresses, how many bits ever the kernel gives these
// (36 at the least, 39, 42, 47, 48 or 52: CONFIG_ARM64_VA_BITS), so above all mapped code as well.
inline uint64_t code_address_mask(const ModuleMap& modules) {
  constexpr uint64_t kLeastTop = uint64_t{1} << 35;  // 36 bits
  const uint64_t end = modules.modules().empty() ? 0 : modules.modules().back().end.value;
  return UINT64_MAX >> std::countl_zero(end | kLeastTop);
}

}  // namespace sentry_prof::unwind
