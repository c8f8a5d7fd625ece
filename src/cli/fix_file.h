// `validate --fix`: one file mended into another.
#pragma once

#include "cli/validate_options.h"

#include <string>

namespace sentry_prof::cli {

// Reads `name`, writes options.output, says what was changed and judges the result: on standard
// output, or on standard error if that is where the file goes. What cannot be mended at all is
// judged, and nothing is written. Returns the exit code.
int fix_file(const std::string& name, const ValidateCommandOptions& options, bool is_coloured);

}  // namespace sentry_prof::cli
