// The two writers behind to_sentry_json, with their ids given from outside: the same profile and
// ids give the same bytes.
#pragma once

#include "sentry_prof/profile.h"

#include <string>

namespace sentry_prof::sentry {

struct V1Ids {
  Uuid event;
  Uuid transaction;
  Uuid trace;
};

// Sample Format V1.
std::string write_v1(const Profile& profile, const V1Ids& ids);

// Sample Format V2. The profiler id is the session's.
std::string write_v2(const Profile& profile, const Uuid& chunk_id);

}  // namespace sentry_prof::sentry
