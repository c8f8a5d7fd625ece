// What the server makes of a profile's samples: what it drops, whether enough are left, how long
// they last.
#pragma once

#include "sentry/problem_list.h"
#include "sentry/profile_facts.h"

#include <string_view>

namespace sentry_prof::sentry {

// `text` is the one that `facts` were gathered from. Adds to `summary`: duration_s,
// samples, idle_samples, dropped_samples, dropped_threads.
// Time: linear in the facts, but for sorting; reads the text once more where a problem has to be
// located.
void judge_samples(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                   ProfileSummary& summary);

}  // namespace sentry_prof::sentry
