#include "sentry/text_kind.h"

#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::sentry;

TEST_CASE("envelopes are told from profiles by content") {
  CHECK(looks_like_envelope("{}\n{\"type\":\"profile_chunk\"}\n{}"));
  CHECK(looks_like_envelope("{\"sent_at\":\"x\"}"));
  CHECK(looks_like_envelope("{\"event_id\":\"x\"}\r\n{\"type\":\"profile\"}\n{}"));
  CHECK(looks_like_envelope("{\"sent_at\":"));
  CHECK(looks_like_envelope("{\"event_id\":\n{\"type\":\"profile\"}\n{}"));
  CHECK(looks_like_envelope("{\"type\":\"profile_chunk\",\"platform\":\"rust\"}\n{}"));
  CHECK(looks_like_envelope("[]\n{\"type\":\"profile_chunk\"}\r\n{}"));
  CHECK(looks_like_envelope("{\"event_id\":\"x\"}"));
  CHECK(looks_like_envelope("{\"release\":\"x\",\"event_id\":\"x\"}\n{\"type\":\"event\"}\n{}"));
  CHECK_FALSE(looks_like_envelope("{\"event_id\":\"x\",\"version\":\"1\"}\n{}"));
  CHECK_FALSE(looks_like_envelope("{\"debug_meta\":{\"images\":[\n{\"type\":\"symbolic\"}\n]}}"));
  CHECK_FALSE(looks_like_envelope("{\"type\":\"transaction\"}\n"));
  for (const std::string_view other :
       {"", "{}", "{}\n", "[]", "x", "{\"event_id\":\"x\"", "\xEF\xBB\xBF{}\n{}"}) {
    CHECK_FALSE(looks_like_envelope(other));
  }
}

TEST_CASE("The kind is told by the ids, then by the version, then by other fields") {
  CHECK(profile_kind(R"({"event_id": 1, "version": "2"})") == ValidatedKind::V1);
  CHECK(profile_kind(R"({"profiler_id": 1, "version": "1"})") == ValidatedKind::V2);
  CHECK(profile_kind(R"({"version": "2"})") == ValidatedKind::V2);
  CHECK(profile_kind(R"({"event_id": 1, "chunk_id": 1, "version": "2"})") == ValidatedKind::V2);
  CHECK(profile_kind(R"({"client_sdk": {}})") == ValidatedKind::V2);
  CHECK(profile_kind(R"({"profile": {"samples": []}, "chunk_id": 1})") == ValidatedKind::V2);
  CHECK(profile_kind(R"({"os": {}})") == ValidatedKind::V1);
  CHECK(profile_kind("[]") == ValidatedKind::Unknown);
  CHECK(profile_kind("") == ValidatedKind::Unknown);
}
