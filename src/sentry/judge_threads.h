// Threads and their names, and the one thread that Sentry shows of a V1 profile.
#pragma once

#include "sentry/problem_list.h"
#include "sentry/profile_facts.h"

#include <string_view>

namespace sentry_prof::sentry {

// `text` is the one that `facts` were gathered from. Adds to `summary`: threads,
// dropped_thread_names. Time: linear in the facts, but for sorting; reads the text once more where
// a problem has to be located.
void judge_threads(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                   ProfileSummary& summary);

}  // namespace sentry_prof::sentry
