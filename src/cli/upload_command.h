// `sentry-prof upload`: files, and what a spool kept, to Sentry.
#pragma once

#include "cli/upload_options.h"

namespace sentry_prof::cli {

// The exit code.
int upload_command(UploadCommandOptions options);

}  // namespace sentry_prof::cli
