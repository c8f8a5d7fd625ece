// What all profiles of one run have in common.
#pragma once

#include "cli/profile_options.h"
#include "sentry_prof/limits.h"
#include "sentry_prof/profile.h"

#include <cstdint>

namespace sentry_prof::cli {

// The builder's estimate is an upper bound; a fifth below the server's limit leaves room for what
// it does not know yet (symbol names).
inline constexpr uint64_t kMaxChunkJson_bytes = limits::kMaxItem_bytes / 5 * 4;

// Of a new profiler id, the options, and the machine that this runs on.
Session make_session(const ProfileOptions& options);

}  // namespace sentry_prof::cli
