// Reads JSON as Sentry's server does (RFC 8259, with the strictness of serde_json): token by token,
// from bytes in memory, with memory that does not depend on them. Each token knows its offset.
//
// Not a general library's job: a judge of what another parser accepts has to agree with it on
// nesting, duplicate keys, trailing bytes, a BOM, lone surrogates and numbers, has to go on behind
// a value of the wrong type, and has to know where each value stands. simdjson, the faster reader
// of what is well-formed, is the oracle of the tests.
#pragma once

#include "base/json_words.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof {

enum class JsonKind : uint8_t { Object, Array, String, Number, True, False, Null, Malformed };

// The text between the quotes, as it stands in the file.
struct JsonString {
  std::string_view raw;
  bool has_escapes = false;

  // With escapes resolved. `buffer` holds the text if there were any.
  std::string_view text(std::string& buffer) const;
  bool is(std::string_view plain) const;
};

struct JsonFault {
  enum class Kind : uint8_t { Syntax, Depth, Utf8 };
  size_t offset = 0;
  const char* what = "";  // "expected ':'", a constant
  Kind kind = Kind::Syntax;
};

// The caller follows the text: peek() says what comes, the function of that kind reads it. After a
// fault every call does nothing, peek() is Malformed and begin_*(), next_*() and try_*() are false.
//
// Where nearly all values are what is expected, ask for that: next_member_is() and try_*() need no
// peek() and read a value in one go. If they are false, nothing has moved but over white space (or
// the reader has failed): then peek() tells more.
class JsonReader {
 public:
  // serde_json refuses the 128th container inside one another.
  static constexpr uint32_t kMaxDepth = 127;

  // `text` must outlive the reader and what it returns.
  explicit JsonReader(std::string_view text)
      : begin_(text.data()), cursor_(text.data()), end_(text.data() + text.size()) {}

  // Skips white space.
  JsonKind peek();

  // Precondition of each: peek() returned that kind.
  void begin_object() { begin_container(); }
  void begin_array() { begin_container(); }
  // Moves to the next member's value and gives its key; false behind the last one.
  bool next_member(JsonString& key);
  // Moves to the next element; false behind the last one.
  bool next_element();
  JsonString string();
  // As it stands in the text; the grammar has been checked, the range has not.
  std::string_view number();
  void literal();  // true, false, null
  // Any value, all of it checked, without recursion.
  void skip_value();

  // Moves to the next member's value if its key is `expected` (spelled without escapes). After
  // "false" comes next_member().
  bool next_member_is(std::string_view expected);
  // A number as json_unsigned() takes one.
  bool try_unsigned(uint64_t& value);
  // A number as json_double() takes one.
  bool try_double(double& value);
  bool try_string(JsonString& value);

  size_t offset() const { return static_cast<size_t>(cursor_ - begin_); }
  bool failed() const { return fault_.has_value(); }
  const std::optional<JsonFault>& fault() const { return fault_; }

  // A second reader of the same text at the offset of a value that was read before.
  static JsonReader at(std::string_view text, size_t offset);

 private:
  bool is_next(char c) const { return cursor_ != end_ && *cursor_ == c; }
  void begin_container();
  void skip_space();
  void skip_more_space();
  void skip_scalar(JsonKind kind);
  bool open_next(char close);
  bool open_first_or_close(char close);
  void skip_plain() { cursor_ = json_words::behind_plain(cursor_, end_); }
  bool skip_special(bool& has_escapes);
  bool skip_escape();
  bool skip_hex4(uint32_t& unit);
  bool skip_digits();
  bool try_long_unsigned(uint64_t& value);
  bool try_short_decimal(double& value);
  // False, for the caller to return.
  bool fail_at(const char* where, const char* what, JsonFault::Kind kind = JsonFault::Kind::Syntax);

  const char* begin_;
  const char* cursor_;
  const char* end_;
  uint32_t depth_ = 0;
  bool is_first_ = false;  // the next member or element is its container's first
  std::optional<JsonFault> fault_;
};

// RFC 8259's number as an unsigned integer as serde_json sees one: no sign, no fraction, no
// exponent, at most 64 bits.
std::optional<uint64_t> json_unsigned(std::string_view number);
// The nearest double; nothing if that is infinite.
std::optional<double> json_double(std::string_view number);

// What is called for each value stands here, to be part of the loops that call it. A fault puts the
// cursor at the end, so that these need to look for the end only.

inline void JsonReader::skip_space() {
  if (cursor_ != end_ && static_cast<unsigned char>(*cursor_) <= ' ') skip_more_space();
}

inline void JsonReader::begin_container() {
  if (depth_ == kMaxDepth) {
    fail_at(cursor_, "nested too deep: the server stops at 128 containers inside one another",
            JsonFault::Kind::Depth);
    return;
  }
  if (cursor_ == end_) return;
  ++depth_;
  ++cursor_;
  is_first_ = true;
}

// Behind a '{' or '[' or one of its values: is there another one? Eats the comma or the closing
// bracket.
inline bool JsonReader::open_next(char close) {
  skip_space();
  if (is_first_ || !is_next(',')) return open_first_or_close(close);
  ++cursor_;
  skip_space();
  return true;
}

inline bool JsonReader::next_element() {
  if (!open_next(']')) return false;
  if (cursor_ != end_ && *cursor_ != ']') return true;
  return fail_at(cursor_, "expected a value behind ','");
}

inline bool JsonReader::next_member_is(std::string_view expected) {
  skip_space();
  const char* at = cursor_;
  if (!is_first_) {
    if (!is_next(',')) return false;
    ++at;
    while (at != end_ && *at == ' ') ++at;
  }
  if (static_cast<size_t>(end_ - at) < expected.size() + 3) return false;
  const char* const closing_quote = at + 1 + expected.size();
  if (*at != '"' || *closing_quote != '"' || closing_quote[1] != ':') return false;
  if (std::memcmp(at + 1, expected.data(), expected.size()) != 0) return false;
  cursor_ = closing_quote + 2;
  is_first_ = false;
  return true;
}

inline bool JsonReader::try_unsigned(uint64_t& value) {
  skip_space();
  if (end_ - cursor_ < 8) return try_long_unsigned(value);
  const uint64_t word = json_words::load_8(cursor_);
  const unsigned count = json_words::digits_of_8(word);
  if (count == 0) return false;
  const char behind = cursor_[count & 7];
  if (count == 8 || (count > 1 && *cursor_ == '0') || behind == '.' || (behind | 0x20) == 'e')
    return try_long_unsigned(value);
  value = json_words::value_of_digits(word, count);
  cursor_ += count;
  return true;
}

inline JsonString JsonReader::string() {
  if (cursor_ == end_) return {};
  const char* const opening_quote = cursor_++;
  JsonString result;
  for (skip_plain(); !is_next('"'); skip_plain()) {
    if (cursor_ == end_) {
      fail_at(opening_quote, "this string does not end");
      return {};
    }
    if (!skip_special(result.has_escapes)) return {};
  }
  result.raw = {opening_quote + 1, static_cast<size_t>(cursor_ - opening_quote - 1)};
  ++cursor_;
  return result;
}

inline bool JsonReader::try_string(JsonString& value) {
  skip_space();
  if (!is_next('"')) return false;
  value = string();
  return !failed();
}

}  // namespace sentry_prof
