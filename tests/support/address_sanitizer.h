// Whether this build has AddressSanitizer, which reserves terabytes of the address space.
#pragma once

namespace sentry_prof::testing {

// g++ and clang++ 14 to 19 say the same in their own ways.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace sentry_prof::testing
