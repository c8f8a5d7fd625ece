// Sends what lies in a spool, the oldest first.
#pragma once

#include "upload/outcome.h"
#include "upload/spool.h"
#include "upload/uploader.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sentry_prof::upload {

struct SpoolRun {
  uint64_t accepted = 0;
  uint64_t given_up = 0;  // the server judged the envelope: it is gone
  // The last that was not accepted; nothing if all were.
  std::optional<Outcome> trouble;
};

// Sends one after the other until the spool is empty or the server, the network or the user ends
// it. What is rate limited is left for later, the rest goes on. `give_up` is told of each envelope
// that the server refused for good. An error is the disk's.
Result<SpoolRun> send_spooled(Spool& spool, Uploader& uploader,
                              const std::function<void(const Outcome&)>& give_up);

}  // namespace sentry_prof::upload
