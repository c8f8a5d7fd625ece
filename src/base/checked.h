// Arithmetic on untrusted numbers: false instead of a wrapped result.
#pragma once

#include <concepts>

namespace sentry_prof {

template <std::integral T>
[[nodiscard]] constexpr bool checked_add(T a, T b, T& sum) {
  return !__builtin_add_overflow(a, b, &sum);
}

template <std::integral T>
[[nodiscard]] constexpr bool checked_mul(T a, T b, T& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

// True if [offset, offset + size) lies within [0, limit).
template <std::unsigned_integral T>
[[nodiscard]] constexpr bool range_fits(T offset, T size, T limit) {
  return offset <= limit && size <= limit - offset;
}

}  // namespace sentry_prof
