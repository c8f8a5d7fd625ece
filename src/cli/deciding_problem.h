// Which of many problems is the one that matters.
#pragma once

#include "sentry_prof/validate.h"

namespace sentry_prof::cli {

// The one that gives Relay's reason: of those that it refuses for, the first in its order of
// checks; where it refuses nothing, the first error. Null if there is none.
const Problem* deciding_problem(const ValidationReport& report);

}  // namespace sentry_prof::cli
