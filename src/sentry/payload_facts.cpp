#include "sentry/payload_facts.h"

#include "base/json_reader.h"
#include "sentry/rfc3339.h"

#include <algorithm>
#include <charconv>

namespace sentry_prof::sentry {

namespace {

// Calls `take(key)` at each member's value, if an object comes; `take` says whether it read the
// value.
template <typename Take>
void read_object(JsonReader& json, Take take) {
  if (json.peek() != JsonKind::Object) return json.skip_value();
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) {
    if (!take(key)) json.skip_value();
  }
}

template <typename Take>
void read_array(JsonReader& json, Take take) {
  if (json.peek() != JsonKind::Array) return json.skip_value();
  json.begin_array();
  while (json.next_element()) take();
}

bool take_text(JsonReader& json, std::string& out) {
  if (json.peek() != JsonKind::String) return false;
  const JsonString string = json.string();
  std::string buffer;
  out = string.text(buffer);
  return true;
}

// Of V1's two spellings: 123 and "123".
bool take_unsigned(JsonReader& json, uint64_t& out) {
  const JsonKind kind = json.peek();
  if (kind != JsonKind::Number && kind != JsonKind::String) return false;
  const std::string_view digits = kind == JsonKind::Number ? json.number() : json.string().raw;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return true;
}

class FactsReader {
 public:
  explicit FactsReader(std::string_view payload) : json_(payload) {}

  Result<PayloadFacts> read() {
    if (json_.peek() != JsonKind::Object) return malformed("it is no JSON object");
    read_object(json_, [&](const JsonString& key) { return take_member(key); });
    if (json_.failed()) {
      return malformed("at byte " + std::to_string(json_.fault()->offset) + ": " +
                       json_.fault()->what);
    }
    return checked();
  }

 private:
  static tl::unexpected<Error> malformed(const std::string& why) {
    return fail(ErrorCode::Malformed, "this is no profile for Sentry: " + why);
  }

  bool take_member(const JsonString& key) {
    if (key.is("version")) return take_text(json_, version_);
    if (key.is("platform")) return take_text(json_, facts_.platform);
    if (key.is("release")) return take_text(json_, facts_.release);
    if (key.is("environment")) return take_text(json_, facts_.environment);
    if (key.is("dist")) return take_text(json_, facts_.dist);
    if (key.is("timestamp")) return take_text(json_, timestamp_);
    if (key.is("debug_meta")) return take_debug_meta(), true;
    if (key.is("profile")) return take_profile(), true;
    if (key.is("transaction")) return take_transaction(), true;
    if (key.is("transactions")) return take_first_transaction(), true;
    return false;
  }

  void take_debug_meta() {
    read_object(json_, [&](const JsonString& key) {
      if (!key.is("images")) return false;
      read_array(json_, [&] { take_image(); });
      return true;
    });
  }

  void take_image() {
    read_object(json_, [&](const JsonString& key) {
      if (!key.is("type") || json_.peek() != JsonKind::String) return false;
      const size_t offset = json_.offset();
      const JsonString type = json_.string();
      // A spelling with escapes ("\u0065lf") is nobody's, and stays as it is.
      if (!type.has_escapes && type.raw == "elf") facts_.elf_type_offsets.push_back(offset);
      return true;
    });
  }

  void take_profile() {
    read_object(json_, [&](const JsonString& key) {
      if (!key.is("samples")) return false;
      read_array(json_, [&] { take_sample(); });
      return true;
    });
  }

  void take_sample() {
    read_object(json_, [&](const JsonString& key) {
      uint64_t elapsed_ns = 0;
      if (!key.is("elapsed_since_start_ns") || !take_unsigned(json_, elapsed_ns)) return false;
      facts_.last_sample_ns = std::max(facts_.last_sample_ns, elapsed_ns);
      return true;
    });
  }

  void take_transaction() {
    read_object(json_, [&](const JsonString& key) {
      if (key.is("id")) return take_text(json_, facts_.transaction_id);
      if (key.is("name")) return take_text(json_, facts_.transaction_name);
      if (key.is("trace_id")) return take_text(json_, facts_.trace_id);
      return false;
    });
  }

  // The older spelling; the server looks at the first one.
  void take_first_transaction() {
    bool is_first = true;
    read_array(json_, [&] {
      if (is_first && facts_.transaction_id.empty()) {
        take_transaction();
      } else {
        json_.skip_value();
      }
      is_first = false;
    });
  }

  Result<PayloadFacts> checked() {
    if (version_ != "1" && version_ != "2")
      return malformed("\"version\" is neither \"1\" nor \"2\"");
    if (facts_.platform.empty()) return malformed("\"platform\" is missing");
    if (version_ == "2") return std::move(facts_);
    facts_.kind = SentryFormat::V1;
    const auto start_unix_ns = parse_rfc3339(timestamp_);
    if (!start_unix_ns) return malformed("\"timestamp\" is missing, or no date");
    facts_.start_unix_ns = *start_unix_ns;
    if (facts_.transaction_id.empty() || facts_.transaction_name.empty() ||
        facts_.trace_id.empty()) {
      return malformed("\"transaction\" lacks its id, name or trace_id");
    }
    return std::move(facts_);
  }

  JsonReader json_;
  PayloadFacts facts_;
  std::string version_, timestamp_;
};

}  // namespace

Result<PayloadFacts> read_payload_facts(std::string_view payload) {
  return FactsReader(payload).read();
}

}  // namespace sentry_prof::sentry
