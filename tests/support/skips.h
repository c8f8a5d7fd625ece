// Tests that cannot run here. They say so, and Meson counts their program as skipped (exit status
// 77); with SENTRY_PROF_REQUIRE_PERF=1 in the environment they fail instead.
#pragma once

#include <string>

namespace sentry_prof::testing {

// Prints the reason, or fails the test where skipping is not allowed. The caller returns.
void note_skip(const std::string& reason);
// Of what even a machine that runs all tests may lack: never a failure.
void note_optional_skip(const std::string& reason);
bool was_skipped();

}  // namespace sentry_prof::testing

// For the beginning of a test case: ends it if `missing`, an optional text, is a reason.
#define SKIP_IF(missing)                             \
  if (const auto why_skipped = (missing)) {          \
    ::sentry_prof::testing::note_skip(*why_skipped); \
    return;                                          \
  }                                                  \
  static_assert(true)
