#include "sentry/transaction_writer.h"

#include "base/json_writer.h"

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

// Unix seconds with six decimals.
std::string seconds(uint64_t unix_us) {
  return fmt::format("{}.{:06}", unix_us / 1'000'000, unix_us % 1'000'000);
}

void write_trace_context(JsonWriter& json, const TransactionFacts& facts) {
  json.key("contexts");
  json.begin_object();
  json.key("trace");
  json.begin_object();
  json.member("trace_id", facts.trace_id);
  json.member("span_id", facts.span_id);
  json.member("op", "profile");
  json.end_object();
  json.end_object();
}

}  // namespace

std::string write_transaction(const TransactionFacts& facts) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("type", "transaction");
  json.member("event_id", facts.event_id);
  json.member("transaction", facts.name);
  json.key("start_timestamp");
  json.raw(seconds(facts.start_unix_us));
  json.key("timestamp");
  json.raw(seconds(facts.end_unix_us));
  json.member("platform", facts.platform);
  json.member_if_not_empty("release", facts.release);
  json.member_if_not_empty("environment", facts.environment);
  json.member_if_not_empty("dist", facts.dist);
  json.key("sdk");
  json.begin_object();
  json.member("name", facts.sdk_name);
  json.member("version", facts.sdk_version);
  json.end_object();
  write_trace_context(json, facts);
  json.end_object();
  return text;
}

}  // namespace sentry_prof::sentry
