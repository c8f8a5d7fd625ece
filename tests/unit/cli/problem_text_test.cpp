#include "cli/problem_text.h"

#include "cli/deciding_problem.h"
#include "cli/validation_json.h"
#include "support/catch2.h"

#include <string>

namespace sentry_prof::cli {

namespace {

Problem problem(std::string_view rule, Severity severity, std::string message = "wrong") {
  Problem problem;
  problem.rule = rule;
  problem.severity = severity;
  problem.is_against_relay = true;
  problem.message = std::move(message);
  return problem;
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("A rule is explained once, and what is not listed is counted") {
  JudgedFile file{"f", {}, {}};
  file.report.valid = file.report.relay.valid = false;
  for (int i = 0; i < 100; ++i)
    file.report.problems.push_back(problem("json-syntax", Severity::Error));
  file.report.unlisted = {{"json-syntax", 900}};
  const std::string text = problem_text(file, {}, false);
  CHECK(occurrences(text, "f:1:1: error: wrong [json-syntax]\n") == 100);
  CHECK(occurrences(text, "    mend: ") == 1);
  CHECK(occurrences(text, "f: 900 more of [json-syntax]\n") == 1);
  CHECK(occurrences(text, "f: invalid: 1000 errors\n") == 1);
}

TEST_CASE("No acceptance is promised of a format that is not judged") {
  JudgedFile file{"f", {}, {}};
  file.report = validate(R"({"platform":"android","profile_id":"x"})");
  const std::string text = problem_text(file, {}, false);
  CHECK(occurrences(text, "accepts it is not known") == 1);
  CHECK(occurrences(text, "Sentry accepts it.") == 0);
  CHECK(validation_json(file, {}).find(R"("relay":{"valid":null,)") != std::string::npos);
}

TEST_CASE("Of notes the first three are listed") {
  JudgedFile file{"f", {}, {}};
  for (int i = 0; i < 10; ++i)
    file.report.problems.push_back(problem("image-type-elf", Severity::Note));
  const std::string text = problem_text(file, {}, false);
  CHECK(occurrences(text, ": note: ") == 3);
  CHECK(occurrences(text, "f: 7 more of [image-type-elf]\n") == 1);
  CHECK(occurrences(text, "f: valid: 10 notes\n") == 1);
}

TEST_CASE("What a file says is shown cut and without control characters") {
  JudgedFile file{"a\nb", {}, {}};
  file.report.problems.push_back(
      problem("json-syntax", Severity::Error, "\x1b[2J" + std::string(100'000, 'x')));
  file.report.problems.back().pointer = "/" + std::string(100'000, 'y') + "\n";
  const std::string text = problem_text(file, {}, false);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("a\nb") == std::string::npos);
  CHECK(text.size() < 5'000);
}

TEST_CASE("The problem that decides is the one that Relay meets first") {
  ValidationReport report;
  CHECK(deciding_problem(report) == nullptr);
  report.problems = {
      problem("image-type-elf", Severity::Note), problem("enough-samples", Severity::Error),
      problem("json-syntax", Severity::Error), problem("stack-frame", Severity::Error)};
  REQUIRE(deciding_problem(report) != nullptr);
  CHECK(deciding_problem(report)->rule == "json-syntax");
}

TEST_CASE("In JSON a book that was not asked has no verdict, and an HTTP status is told") {
  JudgedFile file{"f", {}, {}};
  file.report.kind = ValidatedKind::Envelope;
  file.report.valid = file.report.relay.valid = false;
  file.report.relay.http_status = 413;
  ValidateOptions options;
  options.against_documents = false;
  const std::string json = validation_json(file, options);
  CHECK(json.find(R"("relay":{"valid":false,"reason":null,"http_status":413})") !=
        std::string::npos);
  CHECK(json.find(R"("documents":{"valid":null,"reason":null})") != std::string::npos);
  CHECK(occurrences(json, "\n") == 1);
}

}  // namespace sentry_prof::cli
