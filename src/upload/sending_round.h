// One pass over the envelopes that wait: whether it goes on past one that was not taken.
//
// What fails may be the server or the envelope, and only the next ones tell. So a few in a row may
// fail, the first with all its tries, the others with one each; one that the server judges shows
// that it works. The last of these few is the newest that waits, not the next: envelopes that are
// never taken become the oldest ones, and would be all that is ever tried.
#pragma once

#include "upload/outcome.h"
#include "upload/uploader.h"

#include <cstddef>
#include <optional>

namespace sentry_prof::upload {

class SendingRound {
 public:
  // Of the next envelope.
  Tries tries() const { return failures_in_row_ == 0 ? Tries::All : Tries::One; }

  // Whether the newest is to come before the next.
  bool asks_for_newest() const;
  // The server has judged one.
  void note_verdict() { failures_in_row_ = 0; }
  // One is left for later. False: the rest would fare no better.
  bool goes_on_past(const Outcome& outcome);

  // Why something is left: the last failure that had all its tries or holds for all, or limit.
  const std::optional<Outcome>& trouble() const { return trouble_; }

 private:
  std::optional<Outcome> trouble_;
  size_t limits_learned_ = 0;  // that cost a request
  size_t failures_in_row_ = 0;
};

}  // namespace sentry_prof::upload
