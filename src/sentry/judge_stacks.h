// Stacks and their frames: indices into nothing, frames that tell nothing or cannot be
// symbolicated.
#pragma once

#include "sentry/problem_list.h"
#include "sentry/profile_facts.h"

#include <string_view>

namespace sentry_prof::sentry {

// `text` is the one that `facts` were gathered from. Adds to `summary`: stacks, frames,
// frames_with_function, frames_with_line, frames_with_address.
// Time: linear in the facts, but for sorting; reads the text once more where a problem has to be
// located.
void judge_stacks(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                  ProfileSummary& summary);

}  // namespace sentry_prof::sentry
