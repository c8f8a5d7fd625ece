#include "sentry/envelope_writer.h"

#include "sentry/rfc3339.h"
#include "support/catch2.h"

#include <string>

using sentry_prof::ErrorCode;
using namespace sentry_prof::sentry;

namespace {

const std::string kChunk =
    R"({"version":"2","chunk_id":"0123456789abcdef0123456789abcdef","platform":"rust","release":"elf",)"
    R"("debug_meta":{"images":[{"type":"elf","code_file":"/bin/\"elf\""}, {"type" : "elf" },{"type":"symbolic"},)"
    R"({"type":"\u0065lf"}],"type":"elf"},"profile":{"frames":[{"function":"\"type\":\"elf\""}]}})";

const std::string kV1 =
    R"({"version":"1","event_id":"11111111111111111111111111111111","platform":"rust","release":"r \"1\"",)"
    R"("environment":"prod","timestamp":"2026-01-15T12:00:00.5Z",)"
    R"("transaction":{"id":"22222222222222222222222222222223","name":"main","trace_id":"33333333333333333333333333333333"},)"
    R"("debug_meta":{"images":[{"type":"elf"}]},)"
    R"("profile":{"samples":[{"elapsed_since_start_ns":"0"},{"elapsed_since_start_ns":"2500000000"},)"
    R"({"elapsed_since_start_ns":1000}]}})";

PayloadFacts facts_of(const std::string& payload) {
  auto facts = read_payload_facts(payload);
  INFO((facts ? std::string() : facts.error().message));
  REQUIRE(facts);
  return *facts;
}

EnvelopeOptions options() {
  EnvelopeOptions result;
  result.sdk_name = "sentry-prof";
  result.sdk_version = "1.0";
  return result;
}

}  // namespace

TEST_CASE("A chunk stands in an envelope of its own", "[envelope]") {
  EnvelopeOptions keep = options();
  keep.keeps_image_type = true;
  CHECK(chunk_envelope(kChunk, facts_of(kChunk), keep) ==
        "{}\n{\"type\":\"profile_chunk\",\"length\":" + std::to_string(kChunk.size()) +
            ",\"platform\":\"rust\"}\n" + kChunk + "\n");
}

TEST_CASE("Only the token of an image's type is replaced", "[envelope]") {
  const std::string sent =
      R"({"version":"2","chunk_id":"0123456789abcdef0123456789abcdef","platform":"rust","release":"elf",)"
      R"("debug_meta":{"images":[{"type":"symbolic","code_file":"/bin/\"elf\""}, {"type" : "symbolic" },{"type":"symbolic"},)"
      R"({"type":"\u0065lf"}],"type":"elf"},"profile":{"frames":[{"function":"\"type\":\"elf\""}]}})";
  CHECK(chunk_envelope(kChunk, facts_of(kChunk), options()) ==
        "{}\n{\"type\":\"profile_chunk\",\"length\":" + std::to_string(sent.size()) +
            ",\"platform\":\"rust\"}\n" + sent + "\n");
}

TEST_CASE("A V1 profile comes with its transaction", "[envelope]") {
  const std::string transaction =
      R"({"type":"transaction","event_id":"22222222222222222222222222222223","transaction":"main",)"
      R"("start_timestamp":1768478400.500000,"timestamp":1768478403.000000,"platform":"rust","release":"r \"1\"",)"
      R"("environment":"prod","sdk":{"name":"sentry-prof","version":"1.0"},"contexts":{"trace":)"
      R"({"trace_id":"33333333333333333333333333333333","span_id":"2222222222222222","op":"profile"}}})";
  EnvelopeOptions keep = options();
  keep.keeps_image_type = true;
  CHECK(
      profile_envelope(kV1, facts_of(kV1), keep) ==
      "{\"event_id\":\"22222222222222222222222222222223\"}\n{\"type\":\"transaction\",\"length\":" +
          std::to_string(transaction.size()) + "}\n" + transaction +
          "\n{\"type\":\"profile\",\"length\":" + std::to_string(kV1.size()) + "}\n" + kV1 + "\n");
}

TEST_CASE("Ids of a transaction that we make are 32 hex digits, however the profile spells them",
          "[envelope]") {
  std::string profile = kV1;
  const auto respell = [&](const std::string& from, const std::string& to) {
    profile.replace(profile.find(from), from.size(), to);
  };
  respell("22222222222222222222222222222223", "{22222222-2222-2222-2222-222222222223}");
  respell("33333333333333333333333333333333", "33333333-3333-3333-3333-333333333333");
  const std::string envelope = profile_envelope(profile, facts_of(profile), options());
  CHECK(envelope.starts_with("{\"event_id\":\"22222222222222222222222222222223\"}\n"));
  const std::string transaction = envelope.substr(0, envelope.find("\"type\":\"profile\""));
  CHECK(transaction.find("\"trace_id\":\"33333333333333333333333333333333\"") != transaction.npos);
  CHECK(transaction.find('-') == transaction.find("sentry-prof") + 6);
}

TEST_CASE("The older list of transactions serves, too", "[envelope]") {
  const PayloadFacts facts = facts_of(
      R"({"transactions":[{"id":"a","name":"b","trace_id":"c"},{"id":"x","name":"y","trace_id":"z"}],)"
      R"("timestamp":"2026-01-15T12:00:00Z","platform":"rust","version":"1"})");
  CHECK(facts.transaction_id == "a");
  CHECK(facts.transaction_name == "b");
  CHECK(facts.last_sample_ns == 0);
}

TEST_CASE("A transaction of the caller's goes as it is, if it belongs to the profile",
          "[envelope]") {
  const PayloadFacts facts = facts_of(kV1);
  const std::string own = R"({ "event_id": "22222222-2222-2222-2222-222222222223", "x": [1] })";
  const auto envelope = profile_envelope_with(kV1, facts, own, options());
  REQUIRE(envelope);
  CHECK(envelope->find("\"length\":" + std::to_string(own.size()) + "}\n" + own + "\n") !=
        std::string::npos);
  for (const char* wrong : {"", "[]", "{", R"({"event_id":"4"})", "{}", R"({"event_id":1})",
                            R"({"event_id":"22222222222222222222222222222223"} {})",
                            R"({"event_id":"22222222222222222222222222222223","type":"error"})"}) {
    INFO(wrong);
    const auto refused = profile_envelope_with(kV1, facts, wrong, options());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::InvalidArgument);
  }
}

TEST_CASE("An event of another type does not go as a transaction", "[envelope]") {
  CHECK(transaction_envelope(R"({"event_id":"4","type":"transaction"})"));
  CHECK(transaction_envelope(R"({"event_id":"4"})"));
  const auto refused = transaction_envelope(R"({"type":"error","event_id":"4"})");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::InvalidArgument);
  CHECK(refused.error().message.find("\"error\"") != std::string::npos);
}

TEST_CASE("A span id is 16 hex digits, however the transaction's id is spelled", "[envelope]") {
  const std::string id = "22222222222222222222222222222223";
  const auto envelope_with = [&](const std::string& spelling) {
    std::string profile = kV1;
    profile.replace(profile.find(id), id.size(), spelling);
    return profile_envelope(profile, facts_of(profile), options());
  };
  const auto has_span = [](const std::string& envelope, const std::string& span) {
    return envelope.find("\"span_id\":\"" + span + "\"") != envelope.npos;
  };
  for (const char* spelling :
       {"0A2222222222222222222222222222F3", "0a222222-2222-2222-2222-2222222222f3",
        "{0a222222-2222-2222-2222-2222222222f3}",
        "urn:uuid:0a222222-2222-2222-2222-2222222222f3"}) {
    INFO(spelling);
    CHECK(has_span(envelope_with(spelling), "0a22222222222222"));
  }
  CHECK(has_span(envelope_with("00000000000000003333333333333333"), "3333333333333333"));
}

TEST_CASE("What is no profile has no envelope", "[envelope]") {
  for (const char* wrong :
       {"", "[]", "{", "{}", R"({"version":2,"platform":"rust"})",
        R"({"version":"3","platform":"rust"})", R"({"version":"2"})",
        R"({"version":"1","platform":"rust","timestamp":"2026-01-15T12:00:00Z"})",
        R"({"version":"1","platform":"rust","transaction":{"id":"a","name":"b","trace_id":"c"}})",
        R"({"version":"2","platform":"rust")"}) {
    INFO(wrong);
    const auto facts = read_payload_facts(wrong);
    REQUIRE_FALSE(facts);
    CHECK(facts.error().code == ErrorCode::Malformed);
  }
}

TEST_CASE("Dates of RFC 3339 are read", "[rfc3339]") {
  CHECK(parse_rfc3339("1970-01-01T00:00:00Z") == 0);
  CHECK(parse_rfc3339("2026-01-15T12:00:00.123456789987z") == 1768478400'123456789);
  CHECK(parse_rfc3339("2026-01-15 13:30:00+01:30") == 1768478400'000000000);
  CHECK(parse_rfc3339("2026-01-15t10:30:00.5-01:30") == 1768478400'500000000);
  for (const char* wrong :
       {"", "2026-01-15", "2026-01-15T12:00:00", "2026-02-30T12:00:00Z", "2026-01-15T24:00:00Z",
        "2026-01-15T12:60:00Z", "2026-01-15T12:00:00.Z", "2026-01-15T12:00:00Zx",
        "1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2026-1-15T12:00:00Z",
        "2026-01-15T12:00:00+1:00", "-026-01-15T12:00:00Z"}) {
    INFO(wrong);
    CHECK_FALSE(parse_rfc3339(wrong));
  }
}
