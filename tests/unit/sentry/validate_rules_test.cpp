// The texts of the rules, and what of them can be held against something.
#include "base/json_reader.h"
#include "sentry/rules_parts.h"
#include "support/catch2.h"
#include "validate_cases.h"

#include <set>
#include <string>
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

// A piece is a value, or members of an object; "..." stands for more.
bool is_json(std::string_view piece) {
  const bool is_value = piece.starts_with('{') || piece.starts_with('[');
  const std::string text =
      is_value ? std::string(piece) : std::string("{").append(piece).append("}");
  JsonReader reader(text);
  reader.skip_value();
  return !reader.failed() && reader.offset() == text.size();
}

TEST_CASE("Examples of rules on fields are JSON, and differ") {
  for (const auto rules :
       {sentry::document_rules(), sentry::v1_rules(), sentry::v2_rules(), sentry::image_rules()}) {
    for (const sentry::Rule& rule : rules) {
      INFO(rule.id);
      CHECK(rule.breaks != rule.holds);
      for (const std::string_view piece : {rule.breaks, rule.holds}) {
        const bool is_whole = piece.find("...") == piece.npos;
        CHECK((!is_whole || is_json(piece)));
      }
    }
  }
}

}  // namespace
}  // namespace sentry_prof
