// Collecting problems.
#include "sentry/problem_list.h"
#include "support/catch2.h"

#include <string>
#include <utility>

namespace sentry_prof::sentry {
namespace {

ValidationReport finished(ProblemList&& problems, std::string_view text) {
  ValidationReport report;
  std::move(problems).finish(text, report);
  return report;
}

TEST_CASE("Problems are sorted by offset and located by line and column") {
  ProblemList problems{ValidateOptions{}};
  const std::string text = "ab\n\ncd\ne";
  problems.add("platform", "/end", 8, "");
  problems.add("platform", "/c", 4, "");
  problems.add("release", "/newline", 2, "");
  problems.add("release", "/empty", 3, "");
  problems.add("release", "/b", 1, "");
  problems.add("release", "/e", 7, "");
  const ValidationReport report = finished(std::move(problems), text);
  std::string places;
  for (const Problem& problem : report.problems) {
    places += problem.pointer + " " + std::to_string(problem.line) + ":" +
              std::to_string(problem.column) + "\n";
  }
  CHECK(places == "/b 1:2\n/newline 1:3\n/empty 2:1\n/c 3:1\n/e 4:1\n/end 4:2\n");
}

TEST_CASE("An offset behind the text is its end") {
  ProblemList problems{ValidateOptions{}};
  problems.add("platform", "", 100, "");
  const ValidationReport report = finished(std::move(problems), "a\nb");
  CHECK(report.problems[0].line == 2);
  CHECK(report.problems[0].column == 2);
}

TEST_CASE(
    "Beyond a hundred of a rule callers learn that text is not needed, and the rest is counted") {
  ProblemList problems{ValidateOptions{}};
  for (int i = 0; i < 100; ++i) {
    CHECK(problems.lists("frame-text"));
    problems.add("frame-text", "", 0, "");
  }
  CHECK_FALSE(problems.lists("frame-text"));
  CHECK(problems.lists("frame-line"));
  problems.add("frame-text", "", 0, "");
  problems.count("frame-text", 41);
  const ValidationReport report = finished(std::move(problems), "");
  CHECK(report.problems.size() == 100);
  REQUIRE(report.unlisted.size() == 1);
  CHECK(report.unlisted[0].count == 42);
}

TEST_CASE("A problem that is only counted is a refusal all the same") {
  ProblemList problems{ValidateOptions{}};
  problems.count("frame-text");
  const ValidationReport report = finished(std::move(problems), "");
  CHECK_FALSE(report.valid);
  CHECK(report.relay.reason == "profiling_invalid_json");
}

TEST_CASE("Of several refusals the earliest stage gives the reason") {
  ProblemList problems{ValidateOptions{}};
  problems.add("frame-text", "", 0, "");
  problems.add("version", "", 9, "");
  CHECK(finished(std::move(problems), "").relay.reason == "profiling_platform_not_supported");
}

TEST_CASE("Within an envelope offsets and pointers are those of the whole") {
  ProblemList problems{ValidateOptions{}};
  problems.set_base("/items/1/payload", 4);
  problems.add("platform", "/platform", 2, "");
  problems.set_base("", 0);
  problems.add("platform", "/platform", 0, "");
  const ValidationReport report = finished(std::move(problems), "abc\ndefg");
  CHECK(report.problems[0].pointer == "/platform");
  CHECK(report.problems[1].pointer == "/items/1/payload/platform");
  CHECK(report.problems[1].offset_bytes == 6);
  CHECK(report.problems[1].line == 2);
  CHECK(report.problems[1].column == 3);
}

TEST_CASE("Rules on which the chosen book is silent are not told") {
  ValidateOptions documents;
  documents.against_relay = false;
  ProblemList by_documents{documents};
  CHECK_FALSE(by_documents.lists("thread-priority"));
  CHECK(by_documents.lists("thread-metadata-missing"));
  ValidateOptions relay;
  relay.against_documents = false;
  ProblemList by_relay{relay};
  CHECK(by_relay.lists("thread-priority"));
  CHECK_FALSE(by_relay.lists("thread-metadata-missing"));
  by_relay.add("thread-metadata-missing", "", 0, "");
  CHECK(finished(std::move(by_relay), "").problems.empty());
}

TEST_CASE("A warning leaves a file valid, though not by the documents") {
  ProblemList problems{ValidateOptions{}};
  problems.add("release-missing", "", 0, "");
  const ValidationReport report = finished(std::move(problems), "");
  CHECK(report.valid);
  CHECK(report.relay.valid);
  CHECK_FALSE(report.documents.valid);
  CHECK(report.problems[0].severity == Severity::Warning);
}

}  // namespace
}  // namespace sentry_prof::sentry
