// Which samples of a profile stay, and in which order. See repair.h.
#pragma once

#include "sentry/profile_facts.h"
#include "sentry/repair_changes.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

// Sorts facts.samples by time and takes out of them what the server drops from the sorted list.
// Returns where each of those that stay stood before; nothing, and then nothing is changed, if none
// stays.
//
// Not sorted is a V1 profile that the server takes only because its newest sample, more than 30 s
// after the start, is not its last.
std::vector<uint32_t> choose_samples(ProfileFacts& facts, std::string_view text,
                                     ChangeList& changes);

}  // namespace sentry_prof::sentry
