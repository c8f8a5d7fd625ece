// Mixing of keys for tables.
#pragma once

#include <cstdint>

namespace sentry_prof {

// 2^64 divided by the golden ratio: odd, with its bits spread evenly.
inline constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;

// The highest bits of the product depend on all bits of the key (Knuth, The Art of Computer
// Programming, volume 3, 6.4: Fibonacci hashing).
constexpr uint64_t spread_bits(uint64_t key) { return key * kGoldenRatio; }

}  // namespace sentry_prof
