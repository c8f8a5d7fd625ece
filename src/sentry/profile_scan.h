// Reads a profile's text once along the field tables: tells what is wrong with the JSON and with
// each field's presence and form, and gathers the facts that the judges of meaning need.
#pragma once

#include "sentry/problem_list.h"
#include "sentry/profile_facts.h"

#include <string_view>

namespace sentry_prof::sentry {

// `kind` is V1 or V2. A value of the wrong form does not stop the scan, an error in the JSON does.
// The facts point into `text`. Time: linear. Memory beside the facts: bounded.
ProfileFacts scan_profile(std::string_view text, ValidatedKind kind, ProblemList& problems);

}  // namespace sentry_prof::sentry
