// `sentry-prof convert`.
#pragma once

#include "cli/convert_options.h"

namespace sentry_prof::cli {

// An exit code.
int convert_command(ConvertOptions options);

}  // namespace sentry_prof::cli
