#include "upload/spool_sender.h"

#include "upload/body_encoding.h"
#include "upload/sending_round.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::upload {

namespace {

class Sending {
 public:
  Sending(Spool& spool, Uploader& uploader, const GiveUp& give_up)
      : spool_(spool), uploader_(uploader), give_up_(give_up) {}

  // Until a walk over the spool finds nothing more to try: what came meanwhile is sent, too.
  Result<SpoolRun> run() {
    for (bool is_at_end = false; !is_at_end;) {
      const uint64_t before = tried();
      const auto may_go_on = walk();
      if (!may_go_on) return tl::unexpected(may_go_on.error());
      is_at_end = !*may_go_on || tried() == before;
    }
    run_.trouble = round_.trouble();
    return std::move(run_);
  }

 private:
  uint64_t tried() const { return run_.accepted + run_.given_up + skipped_.size(); }

  // False if the rest would fare no better.
  Result<bool> walk() {
    if (auto ok = spool_.rewind(); !ok) return tl::unexpected(ok.error());
    const bool may_go_on = send_listed();
    if (spool_.unreadable()) run_.error = spool_.unreadable();
    return may_go_on;
  }

  bool send_listed() {
    const auto may_be_sent = [this](Categories categories) { return !is_limited(categories); };
    const auto take = [&] {
      return round_.asks_for_newest() ? spool_.take_newest(may_be_sent)
                                      : spool_.take_next(may_be_sent);
    };
    while (auto envelope = take()) {
      const bool was_tried =
          std::find(skipped_.begin(), skipped_.end(), envelope->name) != skipped_.end();
      if (was_tried) continue;
      if (!send(std::move(*envelope))) return false;
    }
    return true;
  }

  // Then what is left for later has its reason.
  bool is_limited(Categories categories) {
    const auto limited = uploader_.held_back(categories);
    if (limited) round_.goes_on_past(*limited);
    return limited.has_value();
  }

  bool send(SpooledEnvelope envelope) {
    const Outcome outcome = uploader_.send(
        {envelope.body, content_encoding(envelope.encoding), envelope.categories}, round_.tries());
    if (!is_final(outcome.kind)) {
      skipped_.push_back(envelope.name);
      return round_.goes_on_past(outcome);
    }
    round_.note_verdict();
    ++(outcome.kind == OutcomeKind::Accepted ? run_.accepted : run_.given_up);
    if (outcome.kind != OutcomeKind::Accepted) give_up_(envelope, outcome);
    if (auto ok = spool_.remove(std::move(envelope)); !ok) run_.error = ok.error();
    return true;
  }

  Spool& spool_;
  Uploader& uploader_;
  const GiveUp& give_up_;
  std::vector<std::string> skipped_;
  SendingRound round_;
  SpoolRun run_;
};

}  // namespace

Result<SpoolRun> send_spooled(Spool& spool, Uploader& uploader, const GiveUp& give_up) {
  return Sending(spool, uploader, give_up).run();
}

}  // namespace sentry_prof::upload
