// Each rule on JSON and fields: one case that breaks it, one that just does not.
#include "sentry/rules_parts.h"
#include "sentry_prof/validate.h"
#include "support/catch2.h"
#include "validate_cases.h"

#include <algorithm>
#include <set>
#include <string>

namespace sentry_prof {
namespace {

bool names(const ValidationReport& report, std::string_view rule) {
  return std::any_of(report.problems.begin(), report.problems.end(),
                     [&](const Problem& problem) { return problem.rule == rule; });
}

std::string listed(const ValidationReport& report) {
  std::string text;
  for (const Problem& problem : report.problems) {
    text += std::string(problem.rule) + " at " + problem.pointer + ": " + problem.message + "\n";
  }
  return text;
}

TEST_CASE("The profiles that the cases are made of are spotless") {
  for (const char* const name : {"validate/v1.json", "validate/v2.json"}) {
    const ValidationReport report = validate(testing::read_test_file(name));
    INFO(name << "\n" << listed(report));
    CHECK(report.problems.empty());
    CHECK(report.valid);
    CHECK(report.relay.valid);
    CHECK(report.documents.valid);
  }
}

TEST_CASE("Each rule is told where it is broken, and only there") {
  for (const testing::RuleCase& rule_case : testing::read_rule_cases("validate/cases.tsv")) {
    const ValidationReport broken = validate(rule_case.breaks);
    const ValidationReport whole = validate(rule_case.holds);
    INFO("case of line " << rule_case.line << ", " << rule_case.rule << "\nbroken:\n"
                         << listed(broken) << "held:\n"
                         << listed(whole));
    CHECK(names(broken, rule_case.rule));
    CHECK_FALSE(names(whole, rule_case.rule));
  }
}

TEST_CASE("A rule for which the server refuses is a refusal with its reason") {
  ValidateOptions bytes_as_they_are;
  bytes_as_they_are.against_documents = false;
  for (const testing::RuleCase& rule_case : testing::read_rule_cases("validate/cases.tsv")) {
    const sentry::Rule& rule = *sentry::find_rule(rule_case.rule);
    if (rule.relay != sentry::RelayEffect::Refuses) continue;
    const ValidationReport report = validate(rule_case.breaks, bytes_as_they_are);
    INFO("case of line " << rule_case.line << ", " << rule_case.rule << "\n" << listed(report));
    CHECK_FALSE(report.relay.valid);
    CHECK_FALSE(report.valid);
    CHECK(report.relay.reason == rule.reason);
  }
}

TEST_CASE("Every rule on JSON and fields has a case") {
  std::set<std::string> with_case;
  for (const auto& rule_case : testing::read_rule_cases("validate/cases.tsv")) {
    with_case.insert(rule_case.rule);
  }
  with_case.insert("profile-size");  // below
  for (const sentry::Rule& rule : sentry::field_rules()) {
    INFO(rule.id);
    CHECK(with_case.count(std::string(rule.id)) == 1);
  }
}

TEST_CASE("A profile of 50 MiB is judged by what is in it, a larger one by its size alone") {
  std::string text = testing::read_test_file("validate/v2.json");
  text.resize(size_t{50} << 20, ' ');
  CHECK(validate(text).problems.empty());
  text += ' ';
  const ValidationReport report = validate(text);
  INFO(listed(report));
  CHECK(names(report, "profile-size"));
  CHECK(report.relay.reason == "profiling_exceed_size_limit");
  ValidateOptions options;
  options.has_size_limit = false;
  CHECK(validate(text, options).problems.empty());
}

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
