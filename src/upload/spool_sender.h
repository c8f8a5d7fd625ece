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
  // Why something is left, if it was tried (sending_round.h).
  std::optional<Outcome> trouble;
  // Of the disk: what was sent could not be removed, or something could not be read. The last.
  std::optional<Error> error;
};

// Sends one after the other until the spool is empty or the server, the network or the user ends
// it. What is rate limited is left for later, the rest goes on; so does what fails, up to so many
// in a row (sending_round.h). `give_up` is told of each envelope that the server refused for good.
// Where the disk refuses to let go of an envelope, the rest goes on. An error is returned where
// nothing can be listed.
using GiveUp = std::function<void(const SpooledEnvelope&, const Outcome&)>;
Result<SpoolRun> send_spooled(Spool& spool, Uploader& uploader, const GiveUp& give_up);

}  // namespace sentry_prof::upload
