#include "sentry/judge_envelope.h"

#include "judge_support.h"
#include "sentry/envelope_reader.h"
#include "sentry/text_places.h"
#include "sentry/transaction_facts.h"
#include "support/catch2.h"

namespace sentry_prof::sentry {
namespace {

using Rules = std::vector<std::string>;

constexpr std::string_view kId = "30976f2ddbe04ac9b6bffe6e35d4710c";
constexpr std::string_view kTrace = "4b25bc58f14243d8b208d1e22a054164";

std::string with_id(std::string text) {
  const auto put = [&text](std::string_view mark, std::string_view id) {
    for (size_t at = 0; (at = text.find(mark)) != std::string::npos;)
      text.replace(at, mark.size(), id);
  };
  put("$E", kId);
  put("$T", kTrace);
  return text;
}

std::string item(std::string_view type, const std::string& payload, std::string_view more = {}) {
  return "{\"type\":\"" + std::string(type) + "\"" + std::string(more) +
         ",\"length\":" + std::to_string(payload.size()) + "}\n" + payload + "\n";
}

const std::string kHeader = "{\"event_id\":\"$E\"}\n";

std::string transaction(
    std::string_view more = {},
    std::string_view trace = R"({"trace_id":"$T","span_id":"b0e6f15b45c36b12"})") {
  return with_id(
      R"({"event_id":"$E","start_timestamp":10.0,"timestamp":10.5,"sdk":{"name":"a","version":"1"},"contexts":{"trace":)" +
      std::string(trace) + "}" + std::string(more) + "}");
}

// A payload is: platform transaction-id trace-id, as the driver would find them in JSON.
ProfileFacts fake_judge(std::string_view payload, ValidatedKind declared, ProblemList& problems,
                        ProfileSummary& summary) {
  ProfileFacts facts;
  facts.kind = declared;
  ++summary.samples;
  const auto text_of = [payload](std::initializer_list<std::string_view> keys) {
    const size_t offset = path_offset(payload, keys);
    return payload[offset] == '"'
               ? payload.substr(offset + 1, payload.find('"', offset + 1) - offset - 1)
               : std::string_view();
  };
  facts.platform = text_of({"platform"});
  facts.transaction_id = text_of({"transaction", "id"});
  facts.trace_id = text_of({"transaction", "trace_id"});
  if (payload.find("bad") != payload.npos) {
    problems.add("stack-frame", "/profile/stacks/0", payload.find("bad"), "bad");
  }
  return facts;
}

std::string v1_profile() {
  return with_id(R"({"platform":"rust","transaction":{"id":"$E","trace_id":"$T"}})");
}
const std::string kChunk = R"({"platform":"rust"})";
constexpr std::string_view kRust = R"(,"platform":"rust")";

Judged judge(std::string text, const ValidateOptions& options = {}) {
  text = with_id(text);
  Judged judged;
  ProblemList problems(options);
  judge_envelope(text, options, fake_judge, problems, judged.summary);
  std::move(problems).finish(text, judged.report);
  return judged;
}

TEST_CASE("a chunk alone under an empty header is fine") {
  const Judged judged = judge("{}\n" + item("profile_chunk", kChunk, kRust));
  CHECK(judged.rules().empty());
  CHECK(judged.summary.samples == 1);
}

TEST_CASE("a transaction and its profile are fine in any order") {
  const std::string first = item("transaction", transaction());
  const std::string second = item("profile", v1_profile());
  CHECK(judge(kHeader + first + second).rules().empty());
  CHECK(judge(kHeader + second + first).rules().empty());
}

TEST_CASE("the last newline may be missing, a second one may not stand there") {
  std::string text = "{}\n" + item("profile_chunk", kChunk, kRust);
  text.pop_back();
  CHECK(judge(text).rules().empty());
  const Judged judged = judge(text + "\n\n");
  CHECK(judged.rules() == Rules{"envelope-item-header"});
  CHECK(judged.report.relay.http_status == 400);
}

TEST_CASE("headers that the server cannot read cost the envelope") {
  for (const std::string text :
       {"", "[]", "{", "{\"a\":1}x", "{}\r\n{\"type\":\"profile_chunk\"}\n{}"}) {
    const Judged judged = judge(text);
    CHECK(judged.rules() == Rules{"envelope-header"});
    CHECK(judged.report.relay.http_status == 400);
  }
  for (const std::string id : {"1", "\"\"", "\"xyz\"", "{}"}) {
    CHECK(judge("{\"event_id\":" + id + "}\n").pointer("envelope-event-id-form") ==
          "/header/event_id");
  }
  CHECK(judge("{\"event_id\":null}\n").rules() == Rules{"envelope-empty"});
}

TEST_CASE("item headers need a type, once, and lengths of 32 bits") {
  for (const std::string header :
       {"{}", "{\"length\":0}", "{\"type\":1}", "{\"type\":null}",
        "{\"type\":\"event\",\"type\":\"event\"}", "{\"type\":\"event\",\"length\":-1}",
        "{\"type\":\"event\",\"length\":1.0}", "[]", "x",
        "{\"type\":\"event\",\"length\":1000000000000000000000000000000}",
        "{\"type\":\"event\",\"length\":4294967296}", "{\"type\":\"event\",\"sampled\":null}",
        "{\"type\":\"event\",\"platform\":1}", "{\"type\":\"event\"", "{\"type\":\"event\"} \n"}) {
    const Judged judged = judge("{}\n" + header);
    CHECK(judged.rules() == Rules{"envelope-item-header"});
    CHECK(judged.pointer("envelope-item-header") == "/items/0/header");
    CHECK(judged.report.relay.http_status == 400);
  }
}

TEST_CASE("a length that is wrong by one costs the envelope") {
  const Judged small = judge("{}\n{\"type\":\"event\",\"length\":1}\n{}\n");
  CHECK(small.pointer("envelope-length-short") == "/items/0/header/length");
  CHECK(small.find("envelope-length-short")->message.find("has 2 bytes") != std::string::npos);
  const Judged large = judge("{}\n{\"type\":\"event\",\"length\":3}\n{}");
  CHECK(large.pointer("envelope-length-long") == "/items/0/header/length");
  CHECK(large.report.relay.http_status == 400);
  CHECK(judge("{}\n{\"type\":\"event\",\"length\":4294967295}\n{}").rules() ==
        Rules{"envelope-length-long"});
}

TEST_CASE("without length a payload ends at the newline") {
  const Judged judged =
      judge("{}\n{\"type\":\"profile_chunk\",\"platform\":\"rust\"}\n" + kChunk + "\n");
  CHECK(judged.rules() == Rules{"envelope-length-missing"});
  CHECK(judged.report.valid);
}

TEST_CASE("a payload with newlines is taken by its length") {
  CHECK(
      judge("{}\n" + item("profile_chunk", "{\n\"platform\":\"rust\"\n}", kRust)).rules().empty());
}

TEST_CASE("a problem of a payload is told by its place in the envelope") {
  const std::string head = "{}\n" + item("session", "{}");
  const Judged judged =
      judge(head + item("profile_chunk", R"({"platform":"rust","x":"bad"})", kRust));
  CHECK(judged.pointer("stack-frame") == "/items/1/payload/profile/stacks/0");
  const size_t line =
      head.size() +
      std::string(R"({"type":"profile_chunk","platform":"rust","length":29})").size() + 1;
  REQUIRE(judged.find("stack-frame") != nullptr);
  CHECK(judged.find("stack-frame")->offset_bytes == line + 24);
  CHECK(judged.find("stack-frame")->line == 5);
}

TEST_CASE("a chunk must be alone, also beside a V1 profile") {
  const std::string chunk = item("profile_chunk", kChunk, kRust);
  const Judged two = judge("{}\n" + chunk + chunk);
  CHECK(two.rules() == Rules{"envelope-chunks"});
  CHECK(two.pointer("envelope-chunks") == "/items/1/header");
  CHECK(two.report.relay.http_status == 413);
  const Judged mixed =
      judge(kHeader + item("transaction", transaction()) + item("profile", v1_profile()) + chunk);
  CHECK(mixed.rules() == Rules{"envelope-chunks"});
}

TEST_CASE("of two V1 profiles one is refused") {
  const std::string profile = item("profile", v1_profile());
  const Judged judged = judge(kHeader + item("transaction", transaction()) + profile + profile);
  CHECK(judged.rules() == Rules{"envelope-profiles"});
  CHECK(judged.report.relay.reason == "profiling_too_many_profiles");
}

TEST_CASE("a V1 profile needs its transaction unless it says sampled:false") {
  const Judged judged = judge(kHeader + item("profile", v1_profile()));
  CHECK(judged.rules() == Rules{"envelope-transaction-missing"});
  CHECK_FALSE(judged.report.relay.valid);
  const Judged unsampled = judge(kHeader + item("profile", v1_profile(), ",\"sampled\":false"));
  CHECK(unsampled.rules() == Rules{"item-sampled"});
  CHECK(unsampled.report.relay.valid);
}

TEST_CASE("the platform of a chunk's item header is required and must match") {
  CHECK(judge("{}\n" + item("profile_chunk", kChunk)).rules() == Rules{"item-platform-missing"});
  CHECK(judge("{}\n" + item("profile_chunk", kChunk)).report.relay.valid);
  for (const std::string_view other : {R"(,"platform":"cocoa")", R"(,"platform":"native")"}) {
    const Judged judged = judge("{}\n" + item("profile_chunk", kChunk, other));
    CHECK(judged.pointer("item-platform-differs") == "/items/0/header/platform");
    CHECK(judged.report.relay.reason == "profiling_invalid_profile_type");
  }
}

TEST_CASE("a chunk of JSON has no meta_length") {
  const Judged judged =
      judge("{}\n" + item("profile_chunk", kChunk, R"(,"platform":"rust","meta_length":5)"));
  CHECK(judged.rules() == Rules{"item-meta-length"});
  CHECK(judged.report.relay.reason == "profiling_invalid_sampled_profile");
}

TEST_CASE("a transaction's trace context, times and JSON must be right") {
  const auto rules_of = [](const std::string& payload) {
    return judge(kHeader + item("transaction", payload) + item("profile", v1_profile())).rules();
  };
  CHECK(rules_of(transaction({}, "null")) == Rules{"transaction-trace"});
  CHECK(rules_of(transaction({}, R"({"trace_id":"$T"})")) == Rules{"transaction-trace"});
  CHECK(rules_of(transaction({}, R"({"trace_id":"1","span_id":"b0e6f15b45c36b12"})")) ==
        Rules{"transaction-trace"});
  CHECK(rules_of(transaction(R"(,"timestamp":9.9)")) == Rules{"transaction-time"});
  CHECK(rules_of(transaction(R"(,"timestamp":null)")) == Rules{"transaction-time"});
  CHECK(
      rules_of(
          transaction(
              R"(,"start_timestamp":"1970-01-01T00:00:10Z","timestamp":"1970-01-01T00:00:10.5Z")"))
          .empty());
  CHECK(rules_of(transaction(R"(,"timestamp":"1970-01-01T00:00:09.999Z")")) ==
        Rules{"transaction-time"});
  CHECK(rules_of("{") == Rules{"transaction-json"});
  CHECK(rules_of("[]") == Rules{"transaction-json"});
  CHECK(rules_of(transaction() + "x") == Rules{"transaction-json"});
}

TEST_CASE("a transaction without an SDK may cost its profile") {
  for (const std::string_view sdk :
       {R"(,"sdk":null)", R"(,"sdk":{"name":"a"})", R"(,"sdk":{"name":"","version":"1"})"}) {
    const Judged judged =
        judge(kHeader + item("transaction", transaction(sdk)) + item("profile", v1_profile()));
    CHECK(judged.rules() == Rules{"transaction-sdk"});
    CHECK(judged.report.valid);
  }
}

TEST_CASE("ids that do not meet are told where they stand") {
  const std::string other =
      R"({"transaction":{"id":"41fed0925670468bb0457f61a74688ec","trace_id":"41fed0925670468bb0457f61a74688ec"}})";
  const Judged profile =
      judge(kHeader + item("transaction", transaction()) + item("profile", other));
  CHECK(profile.pointer("envelope-event-id") == "/items/1/payload/transaction/id");
  CHECK(profile.pointer("envelope-trace-id") == "/items/1/payload/transaction/trace_id");
  const Judged event =
      judge(kHeader +
            item("transaction", transaction(R"(,"event_id":"41fed0925670468bb0457f61a74688ec")")) +
            item("profile", v1_profile()));
  CHECK(event.rules() == Rules{"envelope-event-id"});
  const Judged none =
      judge("{}\n" + item("transaction", transaction()) + item("profile", v1_profile()));
  CHECK(none.pointer("envelope-event-id") == "/header");
}

TEST_CASE("ids are compared, not their spelling") {
  CHECK(judge("{\"event_id\":\"30976F2D-DBE0-4AC9-B6BF-FE6E35D4710C\"}\n" +
              item("transaction", transaction()) + item("profile", v1_profile()))
            .rules()
            .empty());
}

TEST_CASE("a transaction below 19.8 ms loses its profiler") {
  const std::string trace =
      R"({"trace_id":"$T","span_id":"b0e6f15b45c36b12"},"profile":{"profiler_id":"$T"})";
  CHECK(
      judge(kHeader + item("transaction", transaction(R"(,"timestamp":10.019)", trace))).rules() ==
      Rules{"envelope-empty", "transaction-short"});
  CHECK(judge(kHeader + item("transaction", transaction(R"(,"timestamp":10.02)", trace))).rules() ==
        Rules{"envelope-empty"});
}

TEST_CASE("misspelt types are told") {
  CHECK(judge("{}\n" + item("profile-chunk", kChunk)).rules() ==
        Rules{"envelope-empty", "envelope-item-type"});
}

TEST_CASE("items have sizes that the server takes") {
  const std::string large = item("transaction", "{\"a\":\"" + std::string(1 << 20, 'x') + "\"}");
  const Judged judged = judge(kHeader + large);
  CHECK(judged.pointer("envelope-item-size") == "/items/0/payload");
  CHECK(judged.report.relay.http_status == 413);
  ValidateOptions unlimited;
  unlimited.has_size_limit = false;
  CHECK(judge(kHeader + large, unlimited).find("envelope-item-size") == nullptr);
}

TEST_CASE("a file that begins with an item's header is told so") {
  const Judged judged = judge("{\"type\":\"profile_chunk\",\"platform\":\"rust\"}\n{}\n");
  REQUIRE(judged.find("envelope-item-header") != nullptr);
  CHECK(judged.find("envelope-item-header")->message.find("begins with an item's header") !=
        std::string::npos);
}

TEST_CASE("a transaction that is too large was there all the same") {
  const Judged judged = judge(kHeader + item("transaction", std::string((1U << 20) + 1, ' ')) +
                              item("profile", R"({"platform":"rust"})"));
  CHECK(judged.find("envelope-item-size") != nullptr);
  CHECK(judged.find("envelope-transaction-missing") == nullptr);
}

TEST_CASE("a hundred thousand items are read one by one") {
  std::string text = "{}\n";
  for (int i = 0; i < 100'000; ++i)
    text += "{\"type\":\"profile_chunk\",\"platform\":\"rust\"}\n{}\n";
  const Judged judged = judge(text);
  CHECK(judged.summary.samples == 100'000);
  CHECK(judged.report.problems.size() == 101);
}

TEST_CASE("an element's offset is found by its index") {
  const std::string_view text = R"(  [ {"a":1} , [2,3],"x"])";
  const size_t wanted[] = {0, 0, 2, 9};
  CHECK(element_offsets(text, 2, wanted) == std::vector<size_t>{4, 4, 20, 2});
  CHECK(element_offsets(text, 999, wanted) == std::vector<size_t>{999, 999, 999, 999});
  CHECK(member_offset(text, 4, "a") == 9);
  CHECK(member_offset(text, 4, "b") == 4);
}

}  // namespace
}  // namespace sentry_prof::sentry
