#include "upload/spool_sender.h"

#include "upload/body_encoding.h"

#include <utility>

namespace sentry_prof::upload {

namespace {

// Limits hold for categories, of which there are four: behind so many limited envelopes there is
// hardly one that is not.
constexpr size_t kMaxSkipped = 64;

}  // namespace

Result<SpoolRun> send_spooled(Spool& spool, Uploader& uploader,
                              const std::function<void(const Outcome&)>& give_up) {
  SpoolRun run;
  std::vector<std::string> skipped;
  while (skipped.size() < kMaxSkipped) {
    auto taken = spool.take_oldest(skipped);
    if (!taken) return tl::unexpected(taken.error());
    if (!*taken) break;
    SpooledEnvelope& envelope = **taken;
    const Outcome outcome =
        uploader.send({envelope.body, content_encoding(envelope.encoding), envelope.categories});
    if (outcome.kind != OutcomeKind::Accepted) run.trouble = outcome;
    if (is_final(outcome.kind)) {
      (outcome.kind == OutcomeKind::Accepted ? run.accepted : run.given_up) += 1;
      if (outcome.kind != OutcomeKind::Accepted) give_up(outcome);
      if (auto ok = spool.remove(std::move(envelope)); !ok) return tl::unexpected(ok.error());
    } else if (outcome.kind == OutcomeKind::RateLimited) {
      skipped.push_back(envelope.name);
    } else {
      break;
    }
  }
  return run;
}

}  // namespace sentry_prof::upload
