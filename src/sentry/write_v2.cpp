#include "sentry/json_parts.h"
#include "sentry/writers.h"

namespace sentry_prof::sentry {
namespace {

// {"timestamp":1768478400.012345,"thread_id":"4242","stack_id":7}
void write_v2_sample(JsonWriter& json, const Profile& profile, const Sample& sample) {
  const uint64_t unix_time_us = sample.unix_time_ns / 1000;
  ShortText text;
  text.text(R"({"timestamp":)").number(unix_time_us / 1'000'000).text(".");
  text.six_digits(unix_time_us % 1'000'000);
  text.text(R"(,"thread_id":")").number(profile.threads[sample.thread].id);
  text.text(R"(","stack_id":)").number(sample.stack).text("}");
  json.raw(text.view());
}

void write_v2_samples(JsonWriter& json, const Profile& profile) {
  json.key("samples");
  json.begin_array();
  for (const Sample& sample : profile.samples) write_v2_sample(json, profile, sample);
  json.end_array();
}

void write_head(JsonWriter& json, const Session& session, const Uuid& chunk_id) {
  json.member("version", "2");
  json.member("profiler_id", session.profiler_id.to_hex());
  json.member("chunk_id", chunk_id.to_hex());
  json.member("platform", session.platform);
  json.member("release", session.release);
  json.member("environment", session.environment);
  json.key("client_sdk");
  json.begin_object();
  json.member("name", session.sdk_name);
  json.member("version", session.sdk_version);
  json.end_object();
}

}  // namespace

std::string write_v2(const Profile& profile, const Uuid& chunk_id) {
  std::string out;
  out.reserve(expected_json_bytes(profile));
  JsonWriter json(out);
  json.begin_object();
  write_head(json, profile.session, chunk_id);
  write_debug_meta(json, profile);
  json.key("profile");
  json.begin_object();
  write_v2_samples(json, profile);
  write_stacks(json, profile);
  write_frames(json, profile);
  write_thread_metadata(json, profile);
  json.end_object();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace sentry_prof::sentry
