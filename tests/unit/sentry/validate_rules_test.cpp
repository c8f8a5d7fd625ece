// The texts of the rules, and what of them can be held against something.
#include "sentry/rules.h"
#include "support/catch2.h"
#include "validate_cases.h"

#include <set>
#include <string_view>

namespace sentry_prof {
namespace {

TEST_CASE("Rules have ids of their own and tell a user what holds and what to do") {
  std::set<std::string_view> ids;
  for (const sentry::Rule& rule : sentry::all_rules()) {
    INFO(rule.id);
    CHECK(ids.insert(rule.id).second);
    CHECK(sentry::find_rule(rule.id) == &rule);
    CHECK(rule.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == rule.id.npos);
    for (const std::string_view text : {rule.title, rule.server, rule.published, rule.mend,
                                        rule.source, rule.breaks, rule.holds}) {
      CHECK_FALSE(text.empty());
    }
    const bool refuses = rule.relay == sentry::RelayEffect::Refuses;
    CHECK(rule.reason.empty() != refuses);
    CHECK((rule.stage == sentry::RelayStage::Never) != refuses);
  }
  CHECK(sentry::find_rule("no-such-rule") == nullptr);
}

}  // namespace
}  // namespace sentry_prof
