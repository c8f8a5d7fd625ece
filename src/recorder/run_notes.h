// What a user has to know to read a run's figures rightly.
#pragma once

#include "recorder/figures.h"

#include <string>
#include <vector>

namespace sentry_prof::recorder {

// Sentences without an end, most important first: the cause and, where there is one, the next step.
// Those in the figures come before.
std::vector<std::string> notes_of(const RunFigures& figures);

// Of a run that has written no chunk: the note that says why, or that it is so.
std::string why_nothing_was_written(const RunFigures& figures);

}  // namespace sentry_prof::recorder
