// `sentry-prof validate`: judges files and tells what is wrong with them.
#pragma once

#include "cli/validate_options.h"

namespace sentry_prof::cli {

// Returns the exit code: the worst over all files.
int validate_command(const ValidateCommandOptions& options);

}  // namespace sentry_prof::cli
