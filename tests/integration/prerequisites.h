// What a test needs of the machine. A test that cannot run says so and is counted as skipped by
// Meson (exit status 77); with SENTRY_PROF_REQUIRE_PERF=1 in the environment it fails instead.
#pragma once

#include <optional>
#include <string>

namespace sentry_prof::testing {

// Each gives the reason why the test cannot run, or nothing.
std::optional<std::string> missing_perf();                            // tries perf_event_open
std::optional<std::string> missing_program(const std::string& name);  // in PATH
std::optional<std::string> missing_root();
std::optional<std::string> missing_mount_namespace();
// Whether the shell's `script` fails there.
std::optional<std::string> missing_in_mount_namespace(const std::string& what,
                                                      const std::string& script);

// Prints the reason, or fails the test where skipping is not allowed.
void note_skip(const std::string& reason);
// Of what even a machine that runs all tests may lack: never a failure.
void note_optional_skip(const std::string& reason);
bool was_skipped();

}  // namespace sentry_prof::testing

// For the beginning of a test case: ends it if `missing` is a reason.
#define SKIP_IF(missing)                             \
  if (const auto why_skipped = (missing)) {          \
    ::sentry_prof::testing::note_skip(*why_skipped); \
    return;                                          \
  }                                                  \
  static_assert(true)
