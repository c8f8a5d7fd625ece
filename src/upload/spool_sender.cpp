#include "upload/spool_sender.h"

#include "upload/body_encoding.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::upload {

namespace {

// Limits hold for categories, of which there are four: behind so many limited envelopes there is
// hardly one that is not.
constexpr size_t kMaxSkipped = 64;

// A certificate or the user's ^C holds for all envelopes. What was answered may not: a firewall
// that dislikes the bytes of one says 403.
bool may_be_of_one(const Outcome& outcome) {
  return is_worth_retrying(outcome.kind) ||
         (outcome.http_status != 0 && outcome.kind != OutcomeKind::Cancelled);
}

class Sending {
 public:
  Sending(Spool& spool, Uploader& uploader, const GiveUp& give_up)
      : spool_(spool), uploader_(uploader), give_up_(give_up) {}

  // Until a walk over the spool finds nothing more to send: what came meanwhile is sent, too.
  Result<SpoolRun> run() {
    for (uint64_t removed = 1; removed > 0;) {
      const uint64_t before = run_.accepted + run_.given_up;
      const auto may_go_on = walk();
      if (!may_go_on) return tl::unexpected(may_go_on.error());
      if (!*may_go_on) break;
      removed = run_.accepted + run_.given_up - before;
    }
    return std::move(run_);
  }

 private:
  // False if the rest would fare no better.
  Result<bool> walk() {
    if (auto ok = spool_.rewind(); !ok) return tl::unexpected(ok.error());
    const bool may_go_on = send_listed();
    if (spool_.unreadable()) run_.error = spool_.unreadable();
    return may_go_on;
  }

  bool send_listed() {
    while (auto envelope = spool_.take_next()) {
      const bool was_tried =
          std::find(skipped_.begin(), skipped_.end(), envelope->name) != skipped_.end();
      if (was_tried) continue;
      if (!send(std::move(*envelope))) return false;
    }
    return true;
  }

  bool send(SpooledEnvelope envelope) {
    const Outcome outcome =
        uploader_.send({envelope.body, content_encoding(envelope.encoding), envelope.categories},
                       is_in_doubt_ ? Tries::One : Tries::All);
    if (!is_final(outcome.kind)) return skip(envelope.name, outcome);
    is_in_doubt_ = false;
    ++(outcome.kind == OutcomeKind::Accepted ? run_.accepted : run_.given_up);
    if (outcome.kind != OutcomeKind::Accepted) give_up_(envelope, outcome);
    if (auto ok = spool_.remove(std::move(envelope)); !ok) run_.error = ok.error();
    return true;
  }

  // A limit may be of this category only. A failure may be of this envelope only, one that breaks
  // the server or a proxy: the next one tells.
  bool skip(const std::string& name, const Outcome& outcome) {
    // Of two failures the first one had all its tries.
    if (!is_in_doubt_ || !may_be_of_one(outcome)) run_.trouble = outcome;
    skipped_.push_back(name);
    if (skipped_.size() >= kMaxSkipped || !may_be_of_one(outcome)) return false;
    if (outcome.kind == OutcomeKind::RateLimited) return true;
    return !std::exchange(is_in_doubt_, true);
  }

  Spool& spool_;
  Uploader& uploader_;
  const GiveUp& give_up_;
  std::vector<std::string> skipped_;
  SpoolRun run_;
  bool is_in_doubt_ = false;  // whether it is the server or the envelope that fails
};

}  // namespace

Result<SpoolRun> send_spooled(Spool& spool, Uploader& uploader, const GiveUp& give_up) {
  return Sending(spool, uploader, give_up).run();
}

}  // namespace sentry_prof::upload
