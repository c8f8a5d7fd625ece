#include "cli/deciding_problem.h"

#include "sentry/rules.h"

namespace sentry_prof::cli {

namespace {

using sentry::RelayEffect;
using sentry::RelayStage;

// Never for what the server does not refuse.
RelayStage stage_of(const Problem& problem) {
  const sentry::Rule* rule = sentry::find_rule(problem.rule);
  const bool is_refused =
      rule != nullptr && problem.is_against_relay && rule->relay == RelayEffect::Refuses;
  return is_refused ? rule->stage : RelayStage::Never;
}

}  // namespace

const Problem* deciding_problem(const ValidationReport& report) {
  const Problem* decides = nullptr;
  for (const Problem& problem : report.problems) {
    if (problem.severity != Severity::Error) continue;
    if (decides == nullptr || stage_of(problem) < stage_of(*decides)) decides = &problem;
  }
  return decides;
}

}  // namespace sentry_prof::cli
