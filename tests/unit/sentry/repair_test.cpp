#include "repair_properties.h"
#include "support/catch2.h"
#include "validate_cases.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

using namespace sentry_prof;
using namespace sentry_prof::testing;

namespace {

using Pieces = std::initializer_list<std::pair<const char*, const char*>>;

std::string with_pieces(const char* base, Pieces pieces) {
  std::string text = read_test_file(std::string("validate/") + base + ".json");
  for (const auto& [piece, by] : pieces) text = with_first_replaced(text, piece, by);
  return text;
}

// Of a profile with `broken` in the place of `piece`, mending makes one with `mended` there.
void check_mended(const char* base, const char* piece, const char* broken, const char* mended) {
  CAPTURE(base, piece, broken);
  const RepairResult result = repair(with_pieces(base, {{piece, broken}}));
  CHECK(result.text == with_pieces(base, {{piece, mended}}));
  CHECK(result.changes.empty() == (std::string(broken) == mended));
}

void check_untouched(const char* base, const char* piece, const char* broken) {
  check_mended(base, piece, broken, broken);
}

uint64_t count_of(const RepairResult& result, std::string_view what) {
  const auto found = std::find_if(result.changes.begin(), result.changes.end(),
                                  [what](const RepairChange& c) { return c.what == what; });
  return found == result.changes.end() ? 0 : found->count;
}

// A V1 text with these lists.
std::string v1_with(const std::string& samples, const std::string& stacks,
                    const std::string& frames, const std::string& threads) {
  return R"({"version":"1","event_id":"41fed0925670468bb0457f61a74688ec","platform":"rust",)"
         R"("profile":{"samples":[)" +
         samples + R"(],"stacks":[)" + stacks + R"(],"frames":[)" + frames +
         R"(],"thread_metadata":{)" + threads + "}}}";
}

std::string sample(const char* elapsed, int stack, const char* thread) {
  return std::string(R"({"elapsed_since_start_ns":")") + elapsed + R"(","stack_id":)" +
         std::to_string(stack) + R"(,"thread_id":")" + thread + R"("})";
}

constexpr const char* kFrames = R"({"function":"a"},{"function":"b"})";
constexpr const char* kThreads = R"("1":{"name":"main"})";

}  // namespace

TEST_CASE("What is right stays byte for byte") {
  for (const char* name :
       {"sentry/golden_v1.json", "sentry/golden_v2.json", "sentry/golden_v2_native.json",
        "validate/v1.json", "validate/v2.json"}) {
    const std::string text = read_test_file(name);
    const RepairResult result = repair(text);
    CAPTURE(name);
    CHECK(result.outcome == RepairOutcome::Whole);
    CHECK(result.changes.empty());
    CHECK(result.text == text);
  }
}

TEST_CASE("Every case of every rule is mended soundly") {
  for (const RuleCase& rule_case : read_rule_cases("validate/cases.tsv")) {
    CAPTURE(rule_case.rule, rule_case.line);
    CHECK(repair_fault(rule_case.breaks) == "");
    CHECK(repair_fault(rule_case.holds) == "");
  }
}

TEST_CASE("Ids get the documents' spelling") {
  const char* id = "\"41fed0925670468bb0457f61a74688ec\"";
  check_mended("v1", id, "\"41FED092-5670-468B-B045-7F61A74688EC\"", id);
  check_mended("v1", id, "\"{41fed092-5670-468b-b045-7f61a74688ec}\"", id);
  check_mended("v1", id, "\"urn:uuid:41fed092-5670-468b-b045-7f61a74688ec\"", id);
  check_mended("v1", "\"event_id\"", "\"profile_id\"", "\"event_id\"");
  check_untouched("v1", id, "\"41fed092\"");
  check_mended("v2", "\"e20a2268-5dc6-c165-b6aa-a12fa6765a6e\"",
               "\"e20A22685dc6c165b6aaa12fa6765a6e1\"",
               "\"e20A2268-5dc6-c165-b6aa-a12fa6765a6e-1\"");
}

TEST_CASE("Numbers and strings get the form of their field, digit by digit") {
  check_mended("v1", "\"10000000\"", "10000000", "\"10000000\"");
  check_mended("v1", "\"10000000\"", "18446744073709551615", "\"18446744073709551615\"");
  check_mended("v1", "\"10000000\"", "10000000.0", "\"10000000\"");
  check_mended("v1", "\"10000000\"", "\"+10000000\"", "\"10000000\"");
  check_untouched("v1", "\"10000000\"", "10000000.5");
  check_untouched("v1", "\"10000000\"", "1e7");
  check_untouched("v1", "\"10000000\"", "-1");
  check_mended("v2", "1, \"thread_id\": \"4242\"", "1, \"thread_id\": 4242",
               "1, \"thread_id\": \"4242\"");
  check_mended("v2", "1768478400.01", "\"1768478400.010000000000000001\"",
               "1768478400.010000000000000001");
  check_untouched("v2", "1768478400.01", "\"2026-01-15\"");
  check_mended("v2", "\"stack_id\": 1", "\"stack_id\": \"1\"", "\"stack_id\": 1");
  check_mended("v2", "[1]]", "[\"1\"]]", "[1]]");
  check_mended("v2", "\"version\": \"2\"", "\"version\": 2", "\"version\": \"2\"");
  check_untouched("v2", "\"version\": \"2\"", "\"version\": 1");
}

TEST_CASE("Addresses become hex strings") {
  const char* address = "\"0x55d0c0a01300\"";
  check_mended("v2", address, "94355073274624", address);
  check_mended("v2", address, "\"94355073274624\"", address);
  check_untouched("v2", address, "-1");
  check_untouched("v2", address, "\"55d0c0a0130a\"");
}

TEST_CASE("Where one address is hex without 0x, one of digits alone may be, too") {
  const Pieces pieces = {{"\"0x55d0c0a01234\"", "\"550000001234\""},
                         {"\"0x55d0c0a01300\"", "\"55d0c0a01300\""}};
  const std::string text = with_pieces("v2", pieces);
  CHECK(repair(text).text == text);
}

TEST_CASE("Other names of the server's become those of the documents") {
  check_mended("v2", "\"function\": \"main\"", "\"name\": \"main\"", "\"function\": \"main\"");
  check_mended("v2", "\"debug_id\"", "\"id\"", "\"debug_id\"");
}

TEST_CASE("Of a field that is there twice nobody knows which one is true") {
  check_untouched("v2", "\"function\": \"main\"", "\"name\": \"main\", \"function\": \"x\"");
  check_untouched("v1", "\"environment\": \"production\"",
                  "\"environment\": null, \"environment\": \"production\"");
  check_untouched("v2", "\"stacks\"", "\"stacks\": [[1, 0], [0], [0]], \"stacks\"");
}

TEST_CASE("Null goes where none may stand, with the comma that goes with it") {
  check_mended("v1", "\"environment\": \"production\",\n", "\"environment\": null,\n", "");
  check_mended("v1", "{\n\"version\": \"1\"", "{\"dist\": null ,\n\"version\": \"1\"",
               "{\"version\": \"1\"");
  check_mended("v1", "\n}\n}\n", "\n}, \"dist\" : null\n}\n", "\n}\n}\n");
  check_mended("v1", "{\n\"version\"", "{\"x\": 0, \"dist\": null, \"version\"",
               "{\"x\": 0, \"version\"");
  check_untouched("v1", "{\"architecture\": \"x86_64\"}", "null");
}

TEST_CASE("A nice value is no priority") {
  check_mended("v1", ", \"priority\": 20", ", \"priority\": -5", "");
  check_mended("v1", "\"name\": \"main\", \"priority\": 20", "\"priority\": -5", "");
  check_untouched("v1", "\"priority\": 20", "\"priority\": \"high\"");
}

TEST_CASE("A byte order mark goes, damaged text stays") {
  const std::string text = read_test_file("validate/v1.json");
  CHECK(repair("\xEF\xBB\xBF" + text).text == text);
  for (const std::string& broken : {std::string(), std::string("[]"), text.substr(0, 900)}) {
    const RepairResult result = repair(broken);
    CHECK(result.outcome == RepairOutcome::Unreadable);
    CHECK(result.text == broken);
  }
}

TEST_CASE("Samples are sorted, those of the same time stay in their order") {
  const std::string text =
      v1_with(sample("30", 0, "1") + ",\n" + sample("10", 1, "1") + ",\n" + sample("30", 1, "1"),
              "[0],[1]", kFrames, kThreads);
  CHECK(repair(text).text ==
        v1_with(sample("10", 1, "1") + ",\n" + sample("30", 0, "1") + ",\n" + sample("30", 1, "1"),
                "[0],[1]", kFrames, kThreads));
}

TEST_CASE("Samples are not sorted if only their order keeps the server from refusing them") {
  const std::string text =
      v1_with(sample("30000000001", 0, "1") + "," + sample("20000000000", 1, "1"), "[0],[1]",
              kFrames, kThreads);
  CHECK(repair(text).text == text);
}

TEST_CASE("What the server drops goes, and the names of its threads with it") {
  const std::string kept = sample("1", 0, "1") + "," + sample("2", 0, "1");
  const std::string text =
      v1_with(sample("0", 1, "1") + "," + kept + "," + sample("3", 0, "2"), "[0,1],[],[1]", kFrames,
              R"("2":{"name":"x"}, "1":{"name":"main"}, "3":{})");
  const RepairResult result = repair(text);
  CHECK(result.text == v1_with(kept, "[0,1],[]", kFrames, kThreads));
  CHECK(count_of(result, "sample left out that the server drops") == 2);
  CHECK(count_of(result, "stack left out that no sample has") == 1);
  CHECK(count_of(result, "name left out of a thread without samples") == 2);
}

TEST_CASE("Of a profile that the server would drop all of, nothing is taken") {
  const std::string text =
      v1_with(sample("2", 0, "1") + "," + sample("1", 0, "2"), "[0],[1],[1]", kFrames, "");
  CHECK(repair(text).text == text);
}

TEST_CASE("A sample at an edge whose stack is missing goes before sorting puts it into the midst") {
  const std::string text =
      v1_with(sample("2", 9, "1") + "," + sample("1", 0, "1") + "," + sample("3", 0, "1"), "[0,1]",
              kFrames, kThreads);
  CHECK(repair_fault(text) == "");
  CHECK(repair(text).text ==
        v1_with(sample("1", 0, "1") + "," + sample("3", 0, "1"), "[0,1]", kFrames, kThreads));
  const std::string reversed =
      v1_with(sample("5", 9, "1") + "," + sample("3", 0, "1") + "," + sample("1", 0, "1"), "[0,1]",
              kFrames, kThreads);
  CHECK(repair(reversed).text ==
        v1_with(sample("1", 0, "1") + "," + sample("3", 0, "1"), "[0,1]", kFrames, kThreads));
}

TEST_CASE("Equal frames and equal stacks become one, unused ones go") {
  const std::string text = v1_with(
      sample("1", 1, "1") + "," + sample("2", 3, "1") + "," + sample("3", 2, "1"),
      "[9],[1, 2],[3],[1, 0]",
      R"({"function":"b"},{"function":"a"},{"function":"b"},{"function":"c"},{"function":"d"})",
      kThreads);
  const RepairResult result = repair(text);
  CHECK(result.text ==
        v1_with(sample("1", 0, "1") + "," + sample("2", 0, "1") + "," + sample("3", 1, "1"),
                "[1, 0],[2]", R"({"function":"b"},{"function":"a"},{"function":"c"})", kThreads));
  CHECK(count_of(result, "frame merged with an equal one") == 1);
  CHECK(count_of(result, "frame left out that no stack has") == 1);
  CHECK(count_of(result, "stack merged with an equal one") == 1);
  CHECK(count_of(result, "stack left out that no sample has") == 1);
}

TEST_CASE("An index that leads nowhere still leads nowhere") {
  const std::string samples = sample("1", 0, "1") + "," + sample("2", 0, "1");
  const std::string missing_frame =
      v1_with(samples, "[2]", R"({"function":"a"},{"function":"a"})", kThreads);
  CHECK(repair(missing_frame).text == missing_frame);
  const std::string missing_stack =
      v1_with(sample("1", 0, "1") + "," + sample("2", 7, "1") + "," + sample("3", 0, "1"),
              "[0],[0]", kFrames, kThreads);
  CHECK(repair(missing_stack).text == missing_stack);
}

TEST_CASE("Labels of queues without samples go, those in use stay") {
  const std::string queues =
      R"("queue_metadata": {"0x1": {"label": "a"}, "0x2": {"label": "b"}}, )";
  const std::string text = with_pieces(
      "v1", {{"\"thread_metadata\"", (queues + "\"thread_metadata\"").c_str()},
             {"\"stack_id\": 0,", "\"stack_id\": 0, \"queue_address\": \"0\\u0078\u0032\","}});
  const std::string mended = repair(text).text;
  CHECK(mended.find(R"("queue_metadata": {"0x2": {"label": "b"}})") != std::string::npos);
}

TEST_CASE("Envelopes are not taken") {
  const std::string text =
      "{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\"}\n"
      "{\"type\":\"profile\",\"length\":2}\n{}\n";
  const RepairResult result = repair(text);
  CHECK(result.outcome == RepairOutcome::Envelope);
  CHECK(result.text == text);
}
