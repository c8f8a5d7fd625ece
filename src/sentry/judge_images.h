// Debug images as an address space: overlaps, order, frames and images that do not meet, addresses
// cut by the server.
#pragma once

#include "sentry/problem_list.h"
#include "sentry/profile_facts.h"

#include <string_view>

namespace sentry_prof::sentry {

// `text` is the one that `facts` were gathered from. Adds to `summary`: images.
// Time: linear in the facts, but for sorting; reads the text once more where a problem has to be
// located.
void judge_images(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                  ProfileSummary& summary);

}  // namespace sentry_prof::sentry
