#include "sentry/text_kind.h"

#include <algorithm>
#include <string>

namespace sentry_prof::sentry {

namespace {

// Of Relay's item types; others are dropped.
constexpr std::string_view kOtherTypes[] = {
    "attachment",   "check_in",     "client_report",  "event",        "feedback",
    "form_data",    "log",          "metric_buckets", "metric_meta",  "nel",
    "otel_log",     "otel_span",    "raw_security",   "replay_event", "replay_recording",
    "replay_video", "security",     "session",        "sessions",     "span",
    "statsd",       "trace_metric", "unreal_report",  "user_report",  "user_report_v2"};

// Keys at the top of profiles, and those that only an envelope's header has.
constexpr std::string_view kProfileKeys[] = {
    "version",      "profile",    "platform",       "chunk_id",     "profiler_id", "profile_id",
    "client_sdk",   "debug_meta", "device",         "os",           "runtime",     "transaction",
    "transactions", "release",    "environment",    "measurements", "timestamp",   "samples",
    "frames",       "stacks",     "thread_metadata"};
constexpr std::string_view kHeaderKeys[] = {"sent_at", "dsn", "trace", "sdk"};

template <size_t N>
bool is_one_of(const JsonString& key, const std::string_view (&keys)[N]) {
  return std::any_of(std::begin(keys), std::end(keys),
                     [&key](std::string_view candidate) { return key.is(candidate); });
}

// A header is far shorter; a longer line is a profile's.
constexpr size_t kLongestHeader = 64U << 10;

// A line that may be the header of an envelope or of an item.
struct HeaderLine {
  bool is_whole = false;        // an object and nothing else
  bool has_type = false;        // a string
  bool has_known_type = false;  // of Sentry's items
};

HeaderLine read_header_line(std::string_view line) {
  HeaderLine found;
  JsonReader reader(line);
  if (reader.peek() != JsonKind::Object) return found;
  reader.begin_object();
  for (JsonString key; reader.next_member(key);) {
    JsonString type;
    if (!key.is("type") || !reader.try_string(type)) {
      reader.skip_value();
      continue;
    }
    found.has_type = true;
    found.has_known_type = item_kind_of(type) != ItemKind::Unknown;
  }
  found.is_whole =
      !reader.failed() && line.find_first_not_of(" \t\r", reader.offset()) == line.npos;
  return found;
}

// Items tell themselves by their type, which profiles have not. Where the first line is not what an
// envelope begins with, more is asked of the second: images in a profile have types, too.
bool is_header_and_item(const HeaderLine& first, const HeaderLine& second, std::string_view rest) {
  if (first.is_whole && second.has_type) return true;
  if (second.is_whole && second.has_known_type) return true;
  const bool is_header_forgotten = first.is_whole && first.has_known_type;
  return is_header_forgotten && rest.find_first_not_of(" \t\r\n") != rest.npos;
}

bool has_header_keys(std::string_view text) {
  JsonReader reader(text);
  if (reader.peek() != JsonKind::Object) return false;
  reader.begin_object();
  bool has_event_id = false;
  for (JsonString key; reader.next_member(key); reader.skip_value()) {
    if (is_one_of(key, kProfileKeys)) return false;
    if (is_one_of(key, kHeaderKeys)) return true;
    has_event_id = has_event_id || key.is("event_id");
  }
  // An envelope without items; or a line that tells nothing: is there an item behind it?
  if (reader.failed() || has_event_id) return !reader.failed();
  const size_t next = text.find_first_not_of(" \t\r\n", reader.offset());
  return next != text.npos && text[next] == '{';
}

// Which keys of the top object tell its kind.
struct Marks {
  bool has_v1_id = false, has_v2_id = false;
  bool has_v1_field = false, has_v2_field = false;
  std::string version;
};

void note_key(const JsonString& key, Marks& marks) {
  if (key.is("event_id") || key.is("profile_id")) marks.has_v1_id = true;
  if (key.is("chunk_id") || key.is("profiler_id")) marks.has_v2_id = true;
  if (key.is("transaction") || key.is("transactions") || key.is("device") || key.is("os")) {
    marks.has_v1_field = true;
  }
  if (key.is("client_sdk")) marks.has_v2_field = true;
}

ValidatedKind kind_of(const Marks& marks) {
  if (marks.has_v1_id != marks.has_v2_id) {
    return marks.has_v1_id ? ValidatedKind::V1 : ValidatedKind::V2;
  }
  if (marks.version == "1") return ValidatedKind::V1;
  if (marks.version == "2") return ValidatedKind::V2;
  return marks.has_v2_field && !marks.has_v1_field ? ValidatedKind::V2 : ValidatedKind::V1;
}

}  // namespace

ItemKind item_kind_of(const JsonString& type) {
  if (type.is("profile")) return ItemKind::V1;
  // Relay takes the second name, which Sentry's Android SDK 8.10 sent, for the first (ItemType).
  if (type.is("profile_chunk") || type.is("profile_chunk_ui")) return ItemKind::V2;
  if (type.is("transaction")) return ItemKind::Transaction;
  const bool is_known = std::any_of(std::begin(kOtherTypes), std::end(kOtherTypes),
                                    [&type](std::string_view other) { return type.is(other); });
  return is_known ? ItemKind::Other : ItemKind::Unknown;
}

bool looks_like_envelope(std::string_view text) {
  const size_t line_end = text.substr(0, kLongestHeader).find('\n');
  if (line_end != text.npos) {
    const std::string_view rest = text.substr(line_end + 1);
    const HeaderLine first = read_header_line(text.substr(0, line_end));
    const HeaderLine second =
        read_header_line(rest.substr(0, std::min(kLongestHeader, rest.find('\n'))));
    if (is_header_and_item(first, second, rest)) return true;
  }
  return has_header_keys(text);
}

ValidatedKind profile_kind(std::string_view text) {
  JsonReader reader(text);
  if (reader.peek() != JsonKind::Object) return ValidatedKind::Unknown;
  reader.begin_object();
  Marks marks;
  JsonString key;
  std::string buffer;
  while (reader.next_member(key)) {
    note_key(key, marks);
    const bool has_id = marks.has_v1_id != marks.has_v2_id;
    if (has_id && (key.is("profile") || !marks.version.empty())) break;
    JsonString version;
    if (key.is("version") && reader.try_string(version)) {
      marks.version = version.text(buffer);
    } else {
      reader.skip_value();
    }
  }
  return kind_of(marks);
}

}  // namespace sentry_prof::sentry
