// Each rule: one case that breaks it, one that just does not. tests/data/validate/cases.tsv has
// them, but for those of sizes, which are made here.
#include "validate_cases.h"

#include "find_problem.h"
#include "sentry/rules.h"
#include "sentry_prof/validate.h"
#include "support/catch2.h"

#include <algorithm>
#include <set>
#include <string>

namespace sentry_prof {
namespace {

using testing::find_problem;
using testing::RuleCase;

constexpr size_t kMiB = size_t{1} << 20;
const std::set<std::string> kTestedHere = {"profile-size", "envelope-size", "envelope-item-size"};

std::string listed(const ValidationReport& report) {
  std::string text;
  for (const Problem& problem : report.problems) {
    text += std::string(problem.rule) + " at " + problem.pointer + ": " + problem.message + "\n";
  }
  return text;
}

ValidationReport validate_for_server(std::string_view text) {
  ValidateOptions bytes_as_they_are;
  bytes_as_they_are.against_documents = false;
  return validate(text, bytes_as_they_are);
}

std::string_view name_of(Severity severity) {
  if (severity == Severity::Error) return "error";
  return severity == Severity::Warning ? "warning" : "note";
}

std::string answer(const Verdict& verdict) {
  if (verdict.http_status != 0) return "HTTP " + std::to_string(verdict.http_status);
  return verdict.valid ? "ok" : std::string(verdict.reason);
}

TEST_CASE("The documents that the cases are made of are spotless") {
  for (const char* const name :
       {"v1", "v2", "v1_threads", "v2_threads", "envelope_v1", "envelope_v2"}) {
    const ValidationReport report = validate(testing::make_case(name, "", ""));
    INFO(name << "\n" << listed(report));
    CHECK(report.problems.empty());
    CHECK(report.valid);
    CHECK(report.relay.valid);
    CHECK(report.documents.valid);
  }
}

TEST_CASE("Each rule is told where it is broken, at its place, and only there") {
  for (const RuleCase& rule_case : testing::read_rule_cases("validate/cases.tsv")) {
    const ValidationReport broken = validate(rule_case.breaks);
    const ValidationReport whole = validate(rule_case.holds);
    INFO("case of line " << rule_case.table_line << ", " << rule_case.rule << "\nbroken:\n"
                         << listed(broken) << "held:\n"
                         << listed(whole));
    CHECK(find_problem(whole, rule_case.rule) == nullptr);
    const Problem* const problem = find_problem(broken, rule_case.rule);
    CHECK(problem != nullptr);
    if (problem == nullptr) continue;
    CHECK(problem->pointer == rule_case.pointer);
    CHECK(problem->line == rule_case.line);
    CHECK(problem->column == rule_case.column);
    CHECK(name_of(problem->severity) == rule_case.severity);
  }
}

TEST_CASE("The server's verdict on each case is the table's, and a refusal's reason its rule's") {
  for (const RuleCase& rule_case : testing::read_rule_cases("validate/cases.tsv")) {
    const ValidationReport report = validate_for_server(rule_case.breaks);
    INFO("case of line " << rule_case.table_line << ", " << rule_case.rule << "\n"
                         << listed(report));
    CHECK(answer(report.relay) == rule_case.server);
    CHECK(report.valid == (rule_case.server == "ok"));
    const sentry::Rule& rule = *sentry::find_rule(rule_case.rule);
    if (rule.relay == sentry::RelayEffect::Refuses) CHECK(rule_case.server == rule.reason);
  }
}

TEST_CASE("Every rule has a case, and every case a rule") {
  std::set<std::string> with_case = kTestedHere;
  for (const RuleCase& rule_case : testing::read_rule_cases("validate/cases.tsv")) {
    with_case.insert(rule_case.rule);
  }
  for (const sentry::Rule& rule : sentry::all_rules()) {
    INFO(rule.id);
    CHECK(with_case.erase(std::string(rule.id)) == 1);
  }
  CHECK(with_case.empty());
}

// The rule is told of `broken` alone, with the server's answer.
void check_size_rule(std::string_view rule, std::string& text, std::string_view answered) {
  INFO(rule);
  CHECK(find_problem(validate_for_server(text), rule) == nullptr);
  text += ' ';
  const ValidationReport report = validate_for_server(text);
  INFO(listed(report));
  CHECK(find_problem(report, rule) != nullptr);
  CHECK(answer(report.relay) == answered);
  ValidateOptions options;
  options.has_size_limit = false;
  CHECK(find_problem(validate(text, options), rule) == nullptr);
}

TEST_CASE("A profile of 50 MiB is judged by what is in it, a larger one by its size alone") {
  std::string text = testing::read_test_file("validate/v2.json");
  text.resize(50 * kMiB, ' ');
  check_size_rule("profile-size", text, "profiling_exceed_size_limit");
  CHECK(validate(text).problems.size() == 1);
}

TEST_CASE("An envelope of 200 MiB is judged by what is in it, a larger one by its size alone") {
  std::string text = "{\"dsn\":\"\"}\n{\"type\":\"event\"}\n";
  text.resize(200 * kMiB, ' ');
  check_size_rule("envelope-size", text, "HTTP 413");
}

TEST_CASE("Items of envelopes have the limits of their types") {
  std::string chunk = "{\"dsn\":\"\"}\n{\"type\":\"profile_chunk\"}\n{}";
  chunk.resize(chunk.size() - 2 + 50 * kMiB, ' ');
  check_size_rule("envelope-item-size", chunk, "HTTP 413");
  std::string transaction = "{\"dsn\":\"\"}\n{\"type\":\"transaction\"}\n{}";
  transaction.resize(transaction.size() - 2 + kMiB, ' ');
  check_size_rule("envelope-item-size", transaction, "HTTP 413");
}

}  // namespace
}  // namespace sentry_prof
