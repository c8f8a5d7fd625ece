// What ties chunks to a transaction, so that Sentry shows them with it.
// Source: Sentry's developer documentation, "Sample Format V2": contexts.profile.profiler_id, and
// the thread in contexts.trace.data and in each span's data.
#pragma once

#include "sentry_prof/profile.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

struct ProfilerLink {
  std::string profiler_id;
  std::string thread_id;
  std::string thread_name;
};

// Of a V2 chunk: its profiler, and the thread with the most samples. Malformed if one is missing.
Result<ProfilerLink> read_profiler_link(std::string_view chunk);

// `transaction` with the link in it and in each of its spans. A thread that it names already stays;
// `event_id` is its, if it has none: all tries of sending it are one event then.
// InvalidArgument unless it is a JSON object.
Result<std::string> link_transaction(std::string_view transaction, const ProfilerLink& link,
                                     std::string_view event_id);

// One for a whole recording, with fresh ids.
std::string recording_transaction(const Session& session, uint64_t start_unix_ns,
                                  uint64_t end_unix_ns, const ProfilerLink& link);

}  // namespace sentry_prof::sentry
