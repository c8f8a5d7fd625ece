// What a test needs of the machine, for SKIP_IF().
#pragma once

#include "support/skips.h"

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

}  // namespace sentry_prof::testing
