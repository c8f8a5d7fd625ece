#include "sentry/envelope_writer.h"

#include "base/json_writer.h"
#include "sentry/scalar_forms.h"
#include "sentry/transaction_facts.h"
#include "sentry/transaction_writer.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

// Of the three header lines together, besides texts.
constexpr size_t kHeaderRoom_bytes = 1024;

bool replaces_types(const PayloadFacts& facts, const EnvelopeOptions& options) {
  return !options.keeps_image_type && !facts.elf_type_offsets.empty();
}

size_t payload_size(std::string_view payload, const PayloadFacts& facts,
                    const EnvelopeOptions& options) {
  if (!replaces_types(facts, options)) return payload.size();
  return payload.size() +
         facts.elf_type_offsets.size() * (kSymbolicToken.size() - kElfToken.size());
}

void append_payload(std::string& out, std::string_view payload, const PayloadFacts& facts,
                    const EnvelopeOptions& options) {
  size_t done = 0;
  if (replaces_types(facts, options)) {
    for (const size_t offset : facts.elf_type_offsets) {
      out.append(payload, done, offset - done).append(kSymbolicToken);
      done = offset + kElfToken.size();
    }
  }
  out.append(payload, done);
}

// {"type":"profile_chunk","length":123,"platform":"rust"}
void append_item_header(std::string& out, std::string_view type, size_t length_bytes,
                        std::string_view platform) {
  JsonWriter json(out);
  json.begin_object();
  json.member("type", type);
  json.key("length");
  json.number(length_bytes);
  json.member_if_not_empty("platform", platform);
  json.end_object();
  out += '\n';
}

void append_envelope_header(std::string& out, std::string_view event_id) {
  JsonWriter json(out);
  json.begin_object();
  json.member_if_not_empty("event_id", event_id);
  json.end_object();
  out += '\n';
}

// One id has several spellings, of which the server takes all. What is no id stays as it is.
std::string plain_id(std::string_view text) {
  const auto id = parse_uuid(text);
  return id ? id->to_hex() : std::string(text);
}

// 16 hex digits of the id, which is random itself. The server refuses a span id of zeros.
std::string span_id_from(std::string_view id) {
  constexpr size_t kDigits = 16;
  std::string digits = plain_id(id);
  const bool begins_with_zeros = digits.find_first_not_of('0') >= kDigits;
  return begins_with_zeros && digits.size() > kDigits ? digits.substr(kDigits)
                                                      : digits.substr(0, kDigits);
}

std::string transaction_of(const PayloadFacts& facts, const EnvelopeOptions& options) {
  TransactionEvent transaction;
  transaction.event_id = plain_id(facts.transaction_id);
  transaction.trace_id = plain_id(facts.trace_id);
  transaction.span_id = span_id_from(facts.transaction_id);
  transaction.name = facts.transaction_name;
  transaction.platform = facts.platform;
  transaction.release = facts.release;
  transaction.environment = facts.environment;
  transaction.dist = facts.dist;
  transaction.sdk_name = options.sdk_name;
  transaction.sdk_version = options.sdk_version;
  transaction.start_unix_us = facts.start_unix_ns / 1000;
  transaction.end_unix_us =
      transaction.start_unix_us + std::max<uint64_t>(facts.last_sample_ns / 1000, 1);
  return write_transaction(transaction);
}

std::string envelope_of(std::string_view payload, const PayloadFacts& facts,
                        std::string_view transaction, const EnvelopeOptions& options) {
  const size_t length_bytes = payload_size(payload, facts, options);
  std::string out;
  out.reserve(length_bytes + transaction.size() + facts.platform.size() + kHeaderRoom_bytes);
  append_envelope_header(out, plain_id(facts.transaction_id));
  append_item_header(out, "transaction", transaction.size(), "");
  out.append(transaction).append("\n");
  append_item_header(out, "profile", length_bytes, "");
  append_payload(out, payload, facts, options);
  out += '\n';
  return out;  // moved: of what an assignment returns it would be a copy
}

// Of one that may be sent as a transaction.
Result<TransactionFacts> checked_transaction(std::string_view transaction) {
  TransactionFacts facts = read_transaction(transaction);
  if (facts.fault) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the transaction is no JSON object: at byte {}: {}",
                            facts.fault->offset, facts.fault->what));
  }
  // The server takes one without a type for what the item's header says.
  if (!facts.type.empty() && facts.type != "transaction") {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("is an event of type \"{}\", not a transaction", facts.type));
  }
  return facts;
}

}  // namespace

std::string chunk_envelope(std::string_view payload, const PayloadFacts& facts,
                           const EnvelopeOptions& options) {
  const size_t length_bytes = payload_size(payload, facts, options);
  std::string out;
  out.reserve(length_bytes + facts.platform.size() + kHeaderRoom_bytes);
  append_envelope_header(out, "");
  append_item_header(out, "profile_chunk", length_bytes, facts.platform);
  append_payload(out, payload, facts, options);
  out += '\n';
  return out;  // moved: of what an assignment returns it would be a copy
}

std::string profile_envelope(std::string_view payload, const PayloadFacts& facts,
                             const EnvelopeOptions& options) {
  return envelope_of(payload, facts, transaction_of(facts, options), options);
}

Result<std::string> profile_envelope_with(std::string_view payload, const PayloadFacts& facts,
                                          std::string_view transaction,
                                          const EnvelopeOptions& options) {
  const auto own = checked_transaction(transaction);
  if (!own) return tl::unexpected(own.error());
  if (!own->event_id || own->event_id != parse_uuid(facts.transaction_id)) {
    return fail(ErrorCode::InvalidArgument,
                "the transaction's event_id is not the profile's transaction.id (" +
                    facts.transaction_id + "): the server would drop the profile");
  }
  return envelope_of(payload, facts, transaction, options);
}

Result<std::string> transaction_envelope(std::string_view transaction) {
  const auto facts = checked_transaction(transaction);
  if (!facts) return tl::unexpected(facts.error());
  std::string out;
  append_envelope_header(out, facts->event_id ? facts->event_id->to_hex() : "");
  append_item_header(out, "transaction", transaction.size(), "");
  return out.append(transaction).append("\n");
}

}  // namespace sentry_prof::sentry
