// Texts made to hurt: each is judged to the rule that names it, in bounded output and memory.
#include "sentry/problem_list.h"
#include "sentry/profile_scan.h"
#include "sentry_prof/validate.h"
#include "support/catch2.h"
#include "validate_cases.h"

#include <algorithm>
#include <string>

namespace sentry_prof {
namespace {

using testing::read_test_file;
using testing::with_first_replaced;

std::string repeated(const std::string& text, size_t times) {
  std::string result;
  result.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

// v2.json with a field more at its top.
std::string chunk_with(const std::string& member) {
  return with_first_replaced(read_test_file("validate/v2.json"), "\"version\"",
                             member + ", \"version\"");
}

uint64_t count(const ValidationReport& report, std::string_view rule) {
  auto result = static_cast<uint64_t>(
      std::count_if(report.problems.begin(), report.problems.end(),
                    [&](const Problem& problem) { return problem.rule == rule; }));
  for (const UnlistedProblems& unlisted : report.unlisted) {
    if (unlisted.rule == rule) result += unlisted.count;
  }
  return result;
}

// Refused for this rule alone, and told once.
void check_refused(std::string_view text, std::string_view rule) {
  const ValidationReport report = validate(text);
  INFO(rule);
  CHECK(report.problems.size() == 1);
  CHECK(count(report, rule) == 1);
  CHECK(report.relay.reason == "profiling_invalid_json");
}

TEST_CASE("A hundred thousand levels are refused at the 128th, whatever closes them") {
  constexpr size_t kLevels = 100'000;
  for (const std::string& close : {std::string(), std::string(kLevels, ']')}) {
    check_refused("{\"version\": \"2\", \"x\": " + std::string(kLevels, '[') + close + "}",
                  "json-depth");
  }
  check_refused(repeated("{\"a\":", kLevels), "json-depth");
}

TEST_CASE("Ten million objects in a field that nobody knows are fine") {
  const ValidationReport report =
      validate(chunk_with("\"x\": [" + repeated("{},", 10'000'000) + "{}]"));
  CHECK(report.problems.empty());
}

TEST_CASE("Numbers of ten thousand digits are read for what they are") {
  const std::string digits(10'000, '7');
  CHECK(validate(chunk_with("\"x\": 0." + digits)).problems.empty());
  CHECK(validate(chunk_with("\"x\": 0." + digits + "e-" + digits)).problems.empty());
  const std::string text = read_test_file("validate/v2.json");
  const ValidationReport small =
      validate(with_first_replaced(text, "1768478400.01", "1768478400.01" + digits));
  CHECK(small.problems.empty());
  const ValidationReport large = validate(with_first_replaced(text, "1768478400.01", digits));
  CHECK(count(large, "v2-sample-timestamp") == 1);
}

TEST_CASE("What is no number in JSON is a fault in the JSON") {
  for (const char* const text : {"NaN", "-NaN", "Infinity", "-Infinity", "inf", "0x1", "1.", ".5",
                                 "+1", "01", "1e", "--1"}) {
    check_refused("{\"version\": \"2\", \"x\": " + std::string(text) + "}", "json-syntax");
  }
}

TEST_CASE("Bytes that are no UTF-8 are refused wherever they stand") {
  for (const char* const bytes :
       {"\xFF", "\xC3", "\xC0\xAF", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"}) {
    const std::string text = std::string("\"").append(bytes).append("\"");
    check_refused("{\"version\": \"2\", \"x\": " + text + "}", "json-utf8");
    check_refused("{\"version\": \"2\", " + text + ": 1}", "json-utf8");
  }
  for (const char* const bytes : {"\xC2\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
    CHECK(validate(chunk_with("\"x\": \"" + std::string(bytes) + "\"")).problems.empty());
  }
}

TEST_CASE("Half a pair of surrogates is refused") {
  for (const char* const half :
       {"\\ud800", "\\udc00", "\\ud800\\ud800", "\\ud800x", "\\ud83d\\n"}) {
    check_refused("{\"version\": \"2\", \"x\": \"" + std::string(half) + "\"}", "json-syntax");
  }
}

TEST_CASE("A byte order mark is named as such") {
  const ValidationReport report = validate("\xEF\xBB\xBF" + read_test_file("validate/v2.json"));
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].rule == "json-utf8");
  CHECK(report.problems[0].message.find("byte order mark") != std::string::npos);
}

TEST_CASE("A text in UTF-16 or UTF-32 is named as such, with what converts it") {
  const std::string text = read_test_file("validate/v2.json");
  const auto widened = [&](size_t in_front, size_t behind) {
    std::string wide;
    for (const char byte : text) {
      wide.append(in_front, '\0').append(1, byte).append(behind, '\0');
    }
    return wide;
  };
  const auto check = [](const std::string& wide, const std::string& command) {
    const ValidationReport report = validate(wide);
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].rule == "json-utf8");
    CHECK(report.problems[0].message.find(command) != std::string::npos);
  };
  check("\xFF\xFE" + widened(0, 1), "iconv -f UTF-16 -t UTF-8");
  check("\xFE\xFF" + widened(1, 0), "iconv -f UTF-16 -t UTF-8");
  check(widened(0, 1), "iconv -f UTF-16LE -t UTF-8");
  check(widened(1, 0), "iconv -f UTF-16BE -t UTF-8");
  check(std::string("\xFF\xFE\0\0", 4) + widened(0, 3), "iconv -f UTF-32 -t UTF-8");
  check(std::string("\0\0\xFE\xFF", 4) + widened(3, 0), "iconv -f UTF-32 -t UTF-8");
  check(widened(0, 3), "iconv -f UTF-32LE -t UTF-8");
  check(widened(3, 0), "iconv -f UTF-32BE -t UTF-8");
}

TEST_CASE("A number that no 64-bit float holds is told to be the reason") {
  const std::string text = read_test_file("validate/v2.json");
  const ValidationReport report = validate(with_first_replaced(text, "1768478400.01", "1e999"));
  REQUIRE(count(report, "v2-sample-timestamp") == 1);
  CHECK(report.problems[0].message.find("a number that fits a 64-bit float") != std::string::npos);
}

TEST_CASE("A million keys of one name are told a hundred times and counted") {
  const ValidationReport report =
      validate(chunk_with(repeated("\"release\": \"a\", ", 1'000'000) + "\"x\": 1"));
  CHECK(report.problems.size() == 100);
  CHECK(count(report, "json-duplicate-key") == 1'000'000);
}

TEST_CASE("A million problems of a kind are a hundred and a count") {
  const std::string text = read_test_file("validate/v2.json");
  const auto judge = [&](const std::string& list, const std::string& element) {
    return validate(
        with_first_replaced(text, list + "[", list + "[" + repeated(element, 1'000'000)));
  };
  const ValidationReport samples = judge("\"samples\": ", "{},");
  CHECK(count(samples, "sample-stack-id") == 1'000'000);
  CHECK(count(samples, "v2-sample-timestamp") == 1'000'000);
  CHECK(samples.problems.size() == 300);
  CHECK(count(judge("\"frames\": ", "{},"), "frame-empty") > 100);
  CHECK(count(judge("\"stacks\": ", "[9],"), "stack-frame") == 1'000'000);
  CHECK(count(judge("\"images\": ", "{},"), "image-type") == 1'000'000);
}

TEST_CASE("Bytes behind a profile are told once, however many") {
  const std::string text = read_test_file("validate/v2.json");
  const ValidationReport report = validate(text + repeated("{}", 1'000'000));
  CHECK(report.problems.size() == 1);
  CHECK(count(report, "json-trailing-bytes") == 1);
  CHECK(report.relay.valid);
}

TEST_CASE("What is not a profile at all is refused") {
  for (const std::string& text : {std::string(), std::string(" \n"), std::string("\0", 1),
                                  std::string("\x1f\x8b\x08"), std::string(1000, '\xFF')}) {
    const ValidationReport report = validate(text);
    CHECK_FALSE(report.relay.valid);
    CHECK(report.problems.size() == 1);
  }
}

TEST_CASE("Keys and ids of a megabyte are told in a few bytes") {
  const std::string id(1 << 20, '~');
  const std::string text = read_test_file("validate/v2.json");
  for (const ValidationReport& report :
       {validate(with_first_replaced(text, "\"thread_metadata\": {",
                                     "\"thread_metadata\": {\"" + id + "\": {}, ")),
        validate(with_first_replaced(text, "\"samples\": [",
                                     "\"samples\": [{\"timestamp\": 1768478400, \"stack_id\": 0, "
                                     "\"thread_id\": \"" +
                                         id + "\"},"))}) {
    CHECK_FALSE(report.problems.empty());
    for (const Problem& problem : report.problems) {
      CHECK(problem.pointer.size() < 1000);
      CHECK(problem.message.size() < 1000);
    }
  }
}

// Facts of the smallest elements are bounded by the bytes of the text that would hold whole ones.
TEST_CASE("What is remembered of a text is not larger than the text") {
  const auto scan = [](const std::string& list, const std::string& element) {
    const std::string text = with_first_replaced(read_test_file("validate/v2.json"), list + "[",
                                                 list + "[" + repeated(element, 1'000'000));
    sentry::ProblemList problems{ValidateOptions{}};
    const sentry::ProfileFacts facts = sentry::scan_profile(text, ValidatedKind::V2, problems);
    const size_t bytes = facts.images.size() * sizeof(facts.images[0]) +
                         facts.frames.size() * sizeof(facts.frames[0]) +
                         facts.stacks.size() * sizeof(facts.stacks[0]) +
                         facts.samples.size() * sizeof(facts.samples[0]) +
                         facts.threads.size() * sizeof(facts.threads[0]);
    constexpr size_t kFew = 128 << 10;
    return bytes <= text.size() + text.size() / 2 + kFew;
  };
  CHECK(scan("\"images\": ", "{},"));
  CHECK(scan("\"frames\": ", "{},"));
  CHECK(scan("\"stacks\": ", "[],"));
  CHECK(scan("\"samples\": ", "{},"));
}

}  // namespace
}  // namespace sentry_prof
