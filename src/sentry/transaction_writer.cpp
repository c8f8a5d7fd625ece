#include "sentry/transaction_writer.h"

#include "base/json_writer.h"

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

// Unix seconds with six decimals.
std::string seconds(uint64_t unix_us) {
  return fmt::format("{}.{:06}", unix_us / 1'000'000, unix_us % 1'000'000);
}

void write_trace_context(JsonWriter& json, const TransactionEvent& transaction) {
  json.key("contexts");
  json.begin_object();
  json.key("trace");
  json.begin_object();
  json.member("trace_id", transaction.trace_id);
  json.member("span_id", transaction.span_id);
  json.member("op", "profile");
  json.end_object();
  json.end_object();
}

}  // namespace

std::string write_transaction(const TransactionEvent& transaction) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("type", "transaction");
  json.member("event_id", transaction.event_id);
  json.member("transaction", transaction.name);
  json.key("start_timestamp");
  json.raw(seconds(transaction.start_unix_us));
  json.key("timestamp");
  json.raw(seconds(transaction.end_unix_us));
  json.member("platform", transaction.platform);
  json.member_if_not_empty("release", transaction.release);
  json.member_if_not_empty("environment", transaction.environment);
  json.member_if_not_empty("dist", transaction.dist);
  json.key("sdk");
  json.begin_object();
  json.member("name", transaction.sdk_name);
  json.member("version", transaction.sdk_version);
  json.end_object();
  write_trace_context(json, transaction);
  json.end_object();
  return text;
}

}  // namespace sentry_prof::sentry
