#include "sentry/transaction_facts.h"

#include "sentry/rfc3339.h"
#include "sentry/scalar_forms.h"

namespace sentry_prof::sentry {

namespace {

// Calls member(key) with the reader at each value of an object; that reads the value or says false.
// No object: nothing is called.
template <typename Member>
void read_object(JsonReader& reader, Member member) {
  if (reader.peek() != JsonKind::Object) {
    reader.skip_value();
    return;
  }
  reader.begin_object();
  for (JsonString key; reader.next_member(key);) {
    if (reader.peek() == JsonKind::Malformed) return;
    if (!member(key)) reader.skip_value();
  }
}

std::optional<std::string> read_text(JsonReader& reader) {
  if (reader.peek() != JsonKind::String) {
    reader.skip_value();
    return std::nullopt;
  }
  std::string buffer;
  const JsonString string = reader.string();
  return std::string(string.text(buffer));
}

std::optional<Uuid> read_uuid(JsonReader& reader) {
  const std::optional<std::string> text = read_text(reader);
  return text ? parse_uuid(*text) : std::nullopt;
}

bool read_non_empty(JsonReader& reader) {
  const std::optional<std::string> text = read_text(reader);
  return text && !text->empty();
}

// Unlike a profile's, an event's time may lack the offset: it is taken for UTC then.
std::optional<double> text_seconds(const std::string& text) {
  auto time = read_rfc3339(text);
  if (!time) time = read_rfc3339(text + "Z");
  return time ? std::optional(time->seconds()) : std::nullopt;
}

void read_time(JsonReader& reader, bool& is_there, std::optional<double>& seconds) {
  if (reader.peek() == JsonKind::Number) {
    seconds = json_double(reader.number());
    is_there = true;
    return;
  }
  const std::optional<std::string> text = read_text(reader);
  is_there = text.has_value();
  if (text) seconds = text_seconds(*text);
}

void read_sdk(JsonReader& reader, TransactionFacts& facts) {
  bool has_name = false;
  bool has_version = false;
  facts.sdk_offset = reader.offset();
  read_object(reader, [&](const JsonString& key) {
    if (key.is("name")) return has_name = read_non_empty(reader), true;
    if (key.is("version")) return has_version = read_non_empty(reader), true;
    return false;
  });
  facts.has_sdk = has_name && has_version;
}

void read_trace(JsonReader& reader, TransactionFacts& facts) {
  facts.trace_offset = reader.offset();
  read_object(reader, [&](const JsonString& key) {
    if (key.is("trace_id")) return facts.trace_id = read_uuid(reader), true;
    if (key.is("span_id")) {
      const std::optional<std::string> text = read_text(reader);
      facts.has_span_id = text && text->size() == 16 && is_hex_text(*text);
      return true;
    }
    return false;
  });
}

void read_contexts(JsonReader& reader, TransactionFacts& facts) {
  facts.trace_offset = reader.offset();
  read_object(reader, [&](const JsonString& key) {
    if (key.is("trace")) return read_trace(reader, facts), true;
    if (!key.is("profile")) return false;
    read_object(reader, [&](const JsonString& inner) {
      if (!inner.is("profiler_id")) return false;
      facts.has_profiler_id = read_uuid(reader).has_value();
      return true;
    });
    return true;
  });
}

bool read_member(JsonReader& reader, const JsonString& key, TransactionFacts& facts) {
  const size_t offset = reader.offset();
  if (key.is("type")) {
    facts.type = read_text(reader).value_or("");
  } else if (key.is("event_id")) {
    facts.event_id = read_uuid(reader);
    facts.event_id_offset = offset;
  } else if (key.is("start_timestamp")) {
    read_time(reader, facts.has_start, facts.start_s);
    facts.start_offset = offset;
  } else if (key.is("timestamp")) {
    read_time(reader, facts.has_end, facts.end_s);
    facts.end_offset = offset;
  } else if (key.is("sdk")) {
    read_sdk(reader, facts);
  } else if (key.is("contexts")) {
    read_contexts(reader, facts);
  } else {
    return false;
  }
  return true;
}

std::optional<JsonFault> trailing_bytes(std::string_view payload, size_t end) {
  const size_t next = payload.find_first_not_of(" \t\r\n", end);
  if (next == payload.npos) return std::nullopt;
  return JsonFault{next, "nothing may follow the transaction's object"};
}

}  // namespace

TransactionFacts read_transaction(std::string_view payload) {
  TransactionFacts facts;
  JsonReader reader(payload);
  if (reader.peek() != JsonKind::Object) {
    facts.fault = reader.failed() ? reader.fault()
                                  : JsonFault{reader.offset(), "a transaction is a JSON object"};
    return facts;
  }
  read_object(reader, [&](const JsonString& key) { return read_member(reader, key, facts); });
  facts.fault = reader.failed() ? reader.fault() : trailing_bytes(payload, reader.offset());
  return facts;
}

}  // namespace sentry_prof::sentry
