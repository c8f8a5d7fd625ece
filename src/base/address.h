// The two address spaces of a profiler, as two types without conversion between them.
#pragma once

#include <compare>
#include <cstdint>

namespace sentry_prof {

// An address in the running target.
struct RuntimeAddress {
  uint64_t value = 0;
  auto operator<=>(const RuntimeAddress&) const = default;
};

// An address as an ELF file states it (p_vaddr, st_value, FDE ranges).
struct LinkAddress {
  uint64_t value = 0;
  auto operator<=>(const LinkAddress&) const = default;
};

// runtime = link + bias, modulo 2^64: a bias may be "negative" for a prelinked file.
struct LoadBias {
  uint64_t value = 0;
  auto operator<=>(const LoadBias&) const = default;
};

constexpr LinkAddress to_link(RuntimeAddress a, LoadBias bias) { return {a.value - bias.value}; }
constexpr RuntimeAddress to_runtime(LinkAddress a, LoadBias bias) { return {a.value + bias.value}; }

}  // namespace sentry_prof
