// What a run was, told at its end: as JSON for scripts, as text for people.
#pragma once

#include "recorder/figures.h"

#include <string>
#include <vector>

namespace sentry_prof::recorder {

// The object that `record --summary FILE` writes; its keys are part of the command line's contract
// (docs/summary.md).
std::string summary_json(const RunFigures& figures, const std::vector<std::string>& files);

// Lines for the terminal, each ending in a newline. `is_verbose` adds the set-up and all counters.
std::string summary_text(const RunFigures& figures, const std::vector<std::string>& files,
                         bool is_verbose);

}  // namespace sentry_prof::recorder
