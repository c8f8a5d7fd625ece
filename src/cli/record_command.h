// `sentry-prof record`: from checked arguments to an exit code.
#pragma once

#include "cli/record_options.h"

namespace sentry_prof::cli {

// May end this process by the signal that ended the recording, after everything is written.
int record_command(RecordOptions options);

}  // namespace sentry_prof::cli
