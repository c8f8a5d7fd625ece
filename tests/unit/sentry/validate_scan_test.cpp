// Reading a profile along the field tables.
#include "find_problem.h"
#include "sentry/problem_list.h"
#include "sentry/profile_scan.h"
#include "sentry_prof/validate.h"
#include "support/catch2.h"
#include "validate_cases.h"

#include <algorithm>
#include <string>
#include <vector>

namespace sentry_prof {
namespace {

using testing::find_problem;
using testing::read_test_file;
using testing::with_first_replaced;

sentry::ProfileFacts scan(std::string_view text, ValidatedKind kind) {
  sentry::ProblemList problems{ValidateOptions{}};
  return sentry::scan_profile(text, kind, problems);
}

TEST_CASE("A wrong value does not stop the scan: all problems of a file are told, by offset") {
  std::string text = read_test_file("validate/v1.json");
  text = with_first_replaced(text, "\"platform\": \"rust\"", "\"platform\": 7");
  text = with_first_replaced(text, "\"6.1.0\"", "{\"major\": [6]}");
  text = with_first_replaced(text, "\"stack_id\": 1", "\"stack_id\": \"1\"");
  text = with_first_replaced(text, "\"priority\": 20", "\"priority\": -1");
  const ValidationReport report = validate(text);
  REQUIRE(report.problems.size() == 4);
  CHECK(report.problems[0].rule == "platform");
  CHECK(report.problems[0].pointer == "/platform");
  CHECK(report.problems[1].pointer == "/os/version");
  CHECK(report.problems[2].pointer == "/profile/samples/1/stack_id");
  CHECK(report.problems[3].pointer == "/profile/thread_metadata/4242/priority");
}

TEST_CASE("A problem has the line and the column of the value") {
  const std::string text = "{\n  \"version\": \"2\",\n  \"platform\": \t 7\n}";
  const ValidationReport report = validate(text);
  const Problem* const problem = find_problem(report, "platform");
  REQUIRE(problem != nullptr);
  CHECK(problem->line == 3);
  CHECK(problem->column == 17);
  CHECK(text[problem->offset_bytes] == '7');
  const Problem* const missing = find_problem(report, "profile");
  REQUIRE(missing != nullptr);
  CHECK(missing->line == 1);
  CHECK(missing->column == 1);
  CHECK(missing->pointer.empty());
}

TEST_CASE("A key's slashes and tildes are escaped in pointers, and its escapes resolved") {
  std::string text = read_test_file("validate/v2.json");
  text =
      with_first_replaced(text, "\"4242\": {\"name\": \"main\"", "\"a\\/b~\\u00e9\": {\"name\": 1");
  const ValidationReport report = validate(text);
  const Problem* const problem = find_problem(report, "thread-name");
  REQUIRE(problem != nullptr);
  CHECK(problem->pointer == "/profile/thread_metadata/a~1b~0\xC3\xA9/name");
}

TEST_CASE("The server's reason is that of its first check, not of the first problem in the text") {
  std::string text = read_test_file("validate/v1.json");
  text = with_first_replaced(text, "\"device\"", "\"Device\"");
  CHECK(validate(text).relay.reason == "profiling_invalid_json");
  text = with_first_replaced(text, "\"version\": \"1\",", "");
  CHECK(validate(text).relay.reason == "profiling_platform_not_supported");
  text = with_first_replaced(text, "\"platform\"", "\"Platform\"");
  CHECK(validate(text).relay.reason == "profiling_invalid_json");
}

TEST_CASE("An image of type elf is a note, unless the server alone judges the bytes") {
  const std::string text =
      with_first_replaced(read_test_file("validate/v2.json"), "\"symbolic\"", "\"elf\"");
  const ValidationReport both = validate(text);
  REQUIRE(both.problems.size() == 1);
  CHECK(both.problems[0].severity == Severity::Note);
  CHECK(both.valid);
  CHECK(both.relay.valid);
  CHECK(both.documents.valid);
  ValidateOptions options;
  options.against_documents = false;
  const ValidationReport relay = validate(text, options);
  REQUIRE(relay.problems.size() == 1);
  CHECK(relay.problems[0].severity == Severity::Error);
  CHECK(relay.relay.reason == "profiling_invalid_json");
  options = {};
  options.against_relay = false;
  CHECK(validate(text, options).problems.empty());
}

TEST_CASE("Documents alone do not ask what the server does") {
  ValidateOptions options;
  options.against_relay = false;
  std::string text = read_test_file("validate/v1.json");
  text = with_first_replaced(text, "\"priority\": 20", "\"priority\": -1");
  CHECK(validate(text, options).problems.empty());
  text = with_first_replaced(text, "\"release\": \"svc@1.2.3\",", "");
  const ValidationReport report = validate(text, options);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].severity == Severity::Error);
  CHECK_FALSE(report.documents.valid);
}

TEST_CASE("Facts are what the text says") {
  std::string text = read_test_file("validate/v1.json");
  text = with_first_replaced(text, "1, \"thread_id\": \"4242\"", "9, \"thread_id\": \"+0077\"");
  text = with_first_replaced(text, "[1]]", "[5], []]");
  text = with_first_replaced(text, "\"active_thread_id\": \"4242\"",
                             "\"active_thread_id\": \"+04242\"");
  const sentry::ProfileFacts facts = scan(text, ValidatedKind::V1);
  CHECK(facts.is_whole);
  CHECK(facts.platform == "rust");
  CHECK(facts.architecture == "x86_64");
  CHECK(facts.event_id == "41fed0925670468bb0457f61a74688ec");
  CHECK(facts.transaction_id == "30976f2ddbe04ac9b6bffe6e35d4710c");
  CHECK(facts.active_thread_id == "4242");
  CHECK(facts.has_debug_meta);
  REQUIRE(facts.samples.size() == 2);
  CHECK(facts.samples[1].elapsed_ns == 10000000);
  CHECK(facts.samples[1].stack == 9);
  CHECK(facts.threads[facts.samples[1].thread].id == "77");
  REQUIRE(facts.stacks.size() == 3);
  CHECK_FALSE(facts.stacks[0].has_missing_frame);
  CHECK(facts.stacks[1].has_missing_frame);
  CHECK(facts.stacks[2].is_empty);
  REQUIRE(facts.frames.size() == 2);
  CHECK(facts.frames[0].instruction_addr == 0x55d0c0a01234);
  CHECK(facts.frames[0].has_function);
  CHECK_FALSE(facts.frames[0].has_line);
  REQUIRE(facts.images.size() == 1);
  CHECK(facts.images[0].type == "symbolic");
  CHECK(facts.images[0].image_addr == 0x55d0c0a00000);
  CHECK(facts.images[0].image_size == 90112);
  CHECK(facts.images[0].debug_id->to_hyphenated() == "e20a2268-5dc6-c165-b6aa-a12fa6765a6e");
  CHECK(text[facts.samples_offset] == '[');
  CHECK(text[facts.stacks_offset] == '[');
  CHECK(text[facts.frames_offset] == '[');
}

TEST_CASE("Keys in any order, with escapes, between unknown ones are the same profile") {
  const std::string text =
      R"({"profile":{"thread_metadata":{},"frames":[{"x":[1,{}],"\u0066unction":)"
      R"("f"},{"lineno":1,"function":"g"}],"stacks":[[0],[1,0]],"samples":[)"
      R"({"thread_id":"\u0031","timestamp":2,"stack_id":0},)"
      R"({"stack_id":1,"y":null,"thread_id":"1","timestamp":3.5}]}})";
  const sentry::ProfileFacts facts = scan(text, ValidatedKind::V2);
  REQUIRE(facts.samples.size() == 2);
  CHECK(facts.threads.size() == 1);
  CHECK(facts.samples[1].timestamp_s == 3.5);
  CHECK(facts.samples[1].stack == 1);
  REQUIRE(facts.frames.size() == 2);
  CHECK(facts.frames[0].has_function);
  CHECK(facts.frames[1].has_line);
  CHECK(facts.samples_are_typed);
}

TEST_CASE("Of a broken list the facts say so") {
  std::string text = read_test_file("validate/v2.json");
  text = with_first_replaced(text, "1768478400.01", "null");
  const sentry::ProfileFacts facts = scan(text, ValidatedKind::V2);
  CHECK(facts.is_whole);
  CHECK_FALSE(facts.samples_are_typed);
  CHECK(facts.stacks_are_typed);
  CHECK(facts.frames_are_typed);
}

TEST_CASE("Every beginning of a profile is judged without a crash and refused as cut off") {
  for (const char* const name : {"validate/v1.json", "validate/v2.json"}) {
    const std::string text = read_test_file(name);
    for (size_t length = 0; length + 2 < text.size(); ++length) {
      const ValidationReport report = validate(std::string_view(text).substr(0, length));
      INFO(name << " cut at " << length);
      REQUIRE_FALSE(report.relay.valid);
      REQUIRE(report.relay.reason == "profiling_invalid_json");
      REQUIRE(find_problem(report, "json-syntax") != nullptr);
    }
  }
}

TEST_CASE("A fault in the JSON is told with the path that leads to it") {
  std::string text = read_test_file("validate/v2.json");
  text = with_first_replaced(text, "\"stack_id\": 1,", "\"stack_id\": +1,");
  const ValidationReport report = validate(text);
  const Problem* const problem = find_problem(report, "json-syntax");
  REQUIRE(problem != nullptr);
  CHECK(problem->pointer == "/profile/samples/1/stack_id");
  CHECK(text[problem->offset_bytes] == '+');
  CHECK(problem->line == 13);
}

TEST_CASE(
    "Ten million of a nesting, a key of a megabyte and a number of ten thousand digits are borne") {
  CHECK(validate(std::string(10'000'000, '[')).relay.reason == "profiling_invalid_json");
  const std::string long_key(1 << 20, 'k');
  const ValidationReport report =
      validate(R"({"version": "2", "profile": {"thread_metadata": {")" + long_key + R"(": 1}}})");
  const Problem* const problem = find_problem(report, "thread-metadata");
  REQUIRE(problem != nullptr);
  CHECK(problem->pointer.size() < 300);
  std::string text = read_test_file("validate/v2.json");
  text = with_first_replaced(text, "\"stack_id\": 1", "\"stack_id\": " + std::string(10'000, '9'));
  const ValidationReport digits = validate(text);
  REQUIRE(find_problem(digits, "sample-stack-id") != nullptr);
  CHECK(find_problem(digits, "sample-stack-id")->message.size() < 300);
}

TEST_CASE("A frame's field of a wrong type does not hide what is wrong with the samples") {
  std::string text = read_test_file("validate/v2.json");
  text = with_first_replaced(text, "\"stack_id\": 1", "\"stack_id\": 99999");
  REQUIRE(find_problem(validate(text), "sample-stack-dropped") != nullptr);
  text = with_first_replaced(text, "\"frames\": [", "\"frames\": [{\"lineno\": \"x\"},");
  const ValidationReport report = validate(text);
  CHECK(find_problem(report, "frame-line") != nullptr);
  CHECK(find_problem(report, "sample-stack-dropped") != nullptr);
}

TEST_CASE("Empty frames by the thousand are counted, and a stack may refer to any of them") {
  std::string frames = "[";
  for (int i = 0; i < 9999; ++i) frames += "{},";
  const sentry::ProfileFacts facts = scan(
      R"({"profile":{"stacks":[[9999],[10000]],"frames":)" + frames + "{}]}}", ValidatedKind::V2);
  CHECK(facts.frame_count == 10000);
  CHECK(facts.frames.size() * sizeof(sentry::FrameFact) < 2 * frames.size());
  REQUIRE(facts.stacks.size() == 2);
  CHECK_FALSE(facts.stacks[0].has_missing_frame);
  CHECK(facts.stacks[1].has_missing_frame);
}

TEST_CASE("Empty frames at the end of a text exist as any others") {
  for (const size_t count : {2U, 5U, 3000U}) {
    std::string text =
        R"({"version":"2","platform":"rust","profiler_id":"71bba98d90b545c39f2ae73f702d7ef4",)"
        R"("chunk_id":"3e11a5c9831f4e49939c0a81944ea2cb","client_sdk":{"name":"a","version":"1"},)"
        R"("profile":{"samples":[{"timestamp":1,"stack_id":0,"thread_id":"1"},)"
        R"({"timestamp":2,"stack_id":0,"thread_id":"1"}],"stacks":[[0],[)";
    text += std::to_string(count - 1) + R"(]],"frames":[{})";
    for (size_t i = 1; i < count; ++i) text += ",{}";
    const ValidationReport report = validate(text + "]}}");
    INFO(count);
    CHECK(report.relay.valid);
    CHECK(find_problem(report, "stack-frame") == nullptr);
    CHECK(report.summary.frames == count);
  }
}

TEST_CASE("A duration is finite whatever the timestamps are") {
  std::string text = read_test_file("validate/v2.json");
  text = with_first_replaced(text, "1768478400.0,", "-1e308,");
  text = with_first_replaced(text, "1768478400.01", "1.7e308");
  CHECK(validate(text).summary.duration_s == 1e15);
}

TEST_CASE("Of Android's own format nothing is told but that it is one") {
  const ValidationReport report =
      validate(R"({"platform":"android","profile_id":"x","sampled_profile":1,"release":2})");
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].rule == "android-format");
  CHECK(report.relay.valid);
  CHECK_FALSE(report.relay.is_known);
  CHECK(find_problem(validate(R"({"platform":"android","profile_id":"x")"), "json-syntax") !=
        nullptr);
}

TEST_CASE("Of a rule a hundred problems are listed and the others counted") {
  std::string text = read_test_file("validate/v2.json");
  std::string many = "\"samples\": [";
  for (int i = 0; i < 5000; ++i) many += "0,";
  const ValidationReport report = validate(with_first_replaced(text, "\"samples\": [", many));
  CHECK(report.problems.size() == 100);
  REQUIRE(report.unlisted.size() == 1);
  CHECK(report.unlisted[0].rule == "sample");
  CHECK(report.unlisted[0].count == 4900);
}

}  // namespace
}  // namespace sentry_prof
