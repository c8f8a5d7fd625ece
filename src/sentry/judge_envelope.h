// Envelopes: their structure, what the server checks between their items, and each profile in them
// by itself.
#pragma once

#include "sentry/problem_list.h"
#include "sentry/profile_facts.h"

#include <string_view>

namespace sentry_prof::sentry {

// Judges a payload as the whole text of a profile would be, as the kind that its item's type
// demands: V1 for `profile`, V2 for `profile_chunk` (whose version must say the same). Offsets and
// pointers are those within `payload`: the problem list is told where that stands. Adds to
// `summary`. The item's size has been judged.
using JudgeProfile = ProfileFacts (*)(std::string_view payload, ValidatedKind declared,
                                      ProblemList& problems, ProfileSummary& summary);

// Rules of the envelope and of its items. Memory beside what `judge_profile` needs: bounded.
void judge_envelope(std::string_view text, const ValidateOptions& options,
                    JudgeProfile judge_profile, ProblemList& problems, ProfileSummary& summary);

}  // namespace sentry_prof::sentry
