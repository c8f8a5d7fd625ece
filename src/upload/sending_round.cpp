#include "upload/sending_round.h"

namespace sentry_prof::upload {

namespace {

// Each of them costs a server that is down one more request a round.
constexpr size_t kMaxFailuresInRow = 5;
// Limits hold for categories, of which there are four: behind so many that each learned of a limit
// anew there is hardly one without.
constexpr size_t kMaxLimitsLearned = 64;

}  // namespace

bool SendingRound::asks_for_newest() const { return failures_in_row_ + 1 == kMaxFailuresInRow; }

bool SendingRound::goes_on_past(const Outcome& outcome) {
  const bool holds_for_all = !may_be_of_one(outcome);
  if (failures_in_row_ == 0 || holds_for_all) trouble_ = outcome;
  if (holds_for_all) return false;
  if (outcome.kind == OutcomeKind::RateLimited) {
    const bool cost_a_request = outcome.tries > 0;  // not where the limit was known before
    return !cost_a_request || ++limits_learned_ < kMaxLimitsLearned;
  }
  return ++failures_in_row_ < kMaxFailuresInRow;
}

}  // namespace sentry_prof::upload
