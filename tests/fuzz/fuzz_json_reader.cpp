// Any text: our reader of JSON against simdjson's. What one takes as a document the other takes,
// except for the differences that are named here, and every string, number and key says the same to
// both.
#include "base/json_reader.h"
#include "fuzz/require.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <simdjson.h>

using namespace sentry_prof;
using fuzz::require;

namespace {

// Each value is read a second time with the calls that expect something: they must say the same.
void check_string(JsonReader& reader, std::string_view expected) {
  JsonReader other = reader;
  JsonString text;
  require(other.try_string(text));
  std::string buffer;
  require(reader.string().text(buffer) == expected);
  require(text.is(expected) && other.offset() == reader.offset());
}

void check_number(JsonReader& reader, const simdjson::dom::element& expected) {
  JsonReader other = reader;
  const std::string_view text = reader.number();
  uint64_t whole = 0;
  const std::optional<uint64_t> read_whole = json_unsigned(text);
  require(other.try_unsigned(whole) == read_whole.has_value());
  require(!read_whole || (whole == *read_whole && other.offset() == reader.offset()));
  // "-0" is an integer for simdjson, a double for serde_json.
  if (expected.is_uint64() && text[0] != '-') require(read_whole == expected.get_uint64().value());
  const bool is_double = expected.type() == simdjson::dom::element_type::DOUBLE;
  if (is_double) require(!read_whole && json_double(text) == expected.get_double().value());
}

void check_double_again(JsonReader reader) {
  JsonReader other = reader;
  double value = 0;
  const bool is_read = other.try_double(value);
  const std::optional<double> expected = json_double(reader.number());
  require(is_read == expected.has_value() &&
          (!is_read || (value == *expected && other.offset() == reader.offset())));
}

void check_value(JsonReader& reader, const simdjson::dom::element& expected);

// next_member_is() takes the key if it is spelled without escapes and white space, never another
// one.
void check_key(JsonReader& reader, std::string_view expected) {
  JsonReader other = reader;
  JsonString key;
  std::string buffer;
  require(!other.next_member_is(std::string(expected) + "x"));
  const bool is_taken = other.next_member_is(expected);
  require(reader.next_member(key));
  require(key.text(buffer) == expected);
  require(!is_taken || (!key.has_escapes && other.offset() == reader.offset()));
}

void check_object(JsonReader& reader, const simdjson::dom::object& expected) {
  reader.begin_object();
  for (const auto member : expected) {
    check_key(reader, member.key);
    check_value(reader, member.value);
  }
  JsonString key;
  require(!reader.next_member(key));
}

void check_array(JsonReader& reader, const simdjson::dom::array& expected) {
  reader.begin_array();
  for (const auto element : expected) {
    require(reader.next_element());
    check_value(reader, element);
  }
  require(!reader.next_element());
}

// Both took the text: they must have read the same. Its depth is at most 127.
void check_value(JsonReader& reader, const simdjson::dom::element& expected) {
  switch (reader.peek()) {
    case JsonKind::Object:
      check_object(reader, expected.get_object());
      break;
    case JsonKind::Array:
      check_array(reader, expected.get_array());
      break;
    case JsonKind::String:
      check_string(reader, expected.get_string());
      break;
    case JsonKind::Number:
      check_double_again(reader);
      check_number(reader, expected);
      break;
    case JsonKind::Null:
      require(expected.is_null());
      reader.literal();
      break;
    default:
      require(expected.get_bool().value() == (reader.peek() == JsonKind::True));
      reader.literal();
  }
  require(!reader.failed());
}

// Is this a document for our reader: one value, nothing but white space behind it?
bool is_whole(JsonReader& reader, std::string_view text) {
  reader.skip_value();
  return !reader.failed() && text.find_first_not_of(" \t\r\n", reader.offset()) == text.npos;
}

// simdjson looks past a BOM from 3.2 on, refuses what is deeper than 1024 and numbers that no 64
// bits and no double hold.
bool may_differ(std::string_view text, const JsonReader& reader, simdjson::error_code error) {
  if (text.starts_with("\xef\xbb\xbf")) return true;
  if (error == simdjson::SUCCESS)
    return reader.failed() && std::string_view(reader.fault()->what).starts_with("nested too deep");
  // Newer versions have a code of its own for large integers, which older ones do not know: the
  // text tells both.
  const std::string_view message = simdjson::error_message(error);
  return message.find("number") != message.npos || message.find("integer") != message.npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  JsonReader reader(text);
  const bool is_taken = is_whole(reader, text);
  if (reader.failed()) require(reader.fault()->offset <= size);

  simdjson::dom::parser parser;
  simdjson::dom::element document;
  const auto error = parser.parse(text.data(), text.size()).get(document);
  if (is_taken != (error == simdjson::SUCCESS)) require(may_differ(text, reader, error));
  if (!is_taken || error != simdjson::SUCCESS) return 0;
  JsonReader second(text);
  check_value(second, document);
  require(second.offset() == reader.offset());
  return 0;
}
