// What a fuzz target promises of its subject, besides not to crash.
#pragma once

#include <cstdlib>

namespace sentry_prof::fuzz {

// abort() is a finding for libFuzzer; assert() would not be one in a release build.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace sentry_prof::fuzz
