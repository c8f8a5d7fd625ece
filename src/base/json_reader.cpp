#include "base/json_reader.h"

#include "base/utf8.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace sentry_prof {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr uint64_t kEachByte = 0x0101010101010101;
constexpr uint64_t kTopBits = 0x8080808080808080;

// Has one of eight bytes its top bit set, is it a control character, a quote or a backslash?
// (Bit tricks of "Hacker's Delight", section 6-1; a byte behind a hit may be hit wrongly, which costs a second look.)
bool has_special(uint64_t eight) {
  const uint64_t control = eight - kEachByte * 0x20;
  const uint64_t quote = (eight ^ (kEachByte * '"')) - kEachByte;
  const uint64_t backslash = (eight ^ (kEachByte * '\\')) - kEachByte;
  return ((control | quote | backslash | eight) & kTopBits) != 0;
}

const char* skip_plain(const char* cursor, const char* end) {
  while (end - cursor >= 8) {
    uint64_t eight;
    std::memcpy(&eight, cursor, sizeof eight);
    if (has_special(eight)) break;
    cursor += 8;
  }
  while (cursor < end && static_cast<unsigned char>(*cursor) >= 0x20 && *cursor != '"' && *cursor != '\\' &&
         static_cast<unsigned char>(*cursor) < 0x80) {
    ++cursor;
  }
  return cursor;
}

void append_utf8(std::string& out, uint32_t character) {
  if (character < 0x80) {
    out += static_cast<char>(character);
    return;
  }
  const int tail_bytes = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  static constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[tail_bytes] | (character >> (6 * tail_bytes)));
  for (int shift = 6 * (tail_bytes - 1); shift >= 0; shift -= 6) {
    out += static_cast<char>(0x80 | ((character >> shift) & 0x3F));
  }
}

uint32_t hex4(std::string_view digits) {
  uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + 4, value, 16);
  return value;
}

bool is_high_surrogate(uint32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}

bool is_low_surrogate(uint32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

char plain_escape(char letter) {
  switch (letter) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return letter;
  }
}

// Appends what the escape at the start of `rest` stands for; its length. The reader has checked it.
size_t append_escape(std::string& out, std::string_view rest) {
  if (rest[1] != 'u') {
    out += plain_escape(rest[1]);
    return 2;
  }
  const uint32_t unit = hex4(rest.substr(2));
  if (!is_high_surrogate(unit)) {
    append_utf8(out, unit);
    return 6;
  }
  append_utf8(out, 0x10000 + ((unit - 0xD800) << 10) + (hex4(rest.substr(8)) - 0xDC00));
  return 12;
}

}  // namespace

std::string_view JsonString::text(std::string& buffer) const {
  if (!has_escapes) return raw;
  buffer.clear();
  for (size_t at = 0; at < raw.size();) {
    const size_t plain = std::min(raw.find('\\', at), raw.size());
    buffer.append(raw.substr(at, plain - at));
    at = plain;
    if (at < raw.size()) at += append_escape(buffer, raw.substr(at));
  }
  return buffer;
}

bool JsonString::is(std::string_view plain) const {
  if (!has_escapes) return raw == plain;
  std::string buffer;
  return text(buffer) == plain;
}

JsonReader JsonReader::at(std::string_view text, size_t offset) {
  JsonReader reader(text);
  reader.cursor_ += offset;
  return reader;
}

void JsonReader::fail_at(const char* where, const char* what) {
  if (!fault_) fault_ = JsonFault{static_cast<size_t>(where - begin_), what};
  cursor_ = end_;
}

inline void JsonReader::skip_space() {
  while (cursor_ < end_ && (*cursor_ == ' ' || *cursor_ == '\n' || *cursor_ == '\t' || *cursor_ == '\r')) {
    ++cursor_;
  }
}

JsonKind JsonReader::peek() {
  skip_space();
  if (failed()) return JsonKind::Malformed;
  if (cursor_ == end_) {
    fail_at(cursor_, "the text ends where a value should be");
    return JsonKind::Malformed;
  }
  switch (*cursor_) {
    case '{': return JsonKind::Object;
    case '[': return JsonKind::Array;
    case '"': return JsonKind::String;
    case 't': return JsonKind::True;
    case 'f': return JsonKind::False;
    case 'n': return JsonKind::Null;
    default: break;
  }
  if (*cursor_ == '-' || is_digit(*cursor_)) return JsonKind::Number;
  fail_at(cursor_, "this begins no JSON value");
  return JsonKind::Malformed;
}

void JsonReader::begin_container() {
  if (failed()) return;
  if (depth_ == kMaxDepth) {
    fail_at(cursor_, "nested too deep: the server stops at 128 containers inside one another");
    return;
  }
  ++depth_;
  ++cursor_;
  is_first_ = true;
}

// Behind a '{' or '[' or one of its values: is there another one? Eats the comma or the closing bracket.
inline bool JsonReader::open_next(char close) {
  skip_space();
  if (cursor_ == end_) {
    fail_at(cursor_, "the text ends inside an object or array");
    return false;
  }
  if (*cursor_ == close) {
    ++cursor_;
    --depth_;
    is_first_ = false;
    return false;
  }
  if (is_first_) {
    is_first_ = false;
    return true;
  }
  if (*cursor_ != ',') {
    fail_at(cursor_, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    return false;
  }
  ++cursor_;
  return true;
}

bool JsonReader::next_member(JsonString& key) {
  if (failed() || !open_next('}')) return false;
  skip_space();
  if (cursor_ == end_ || *cursor_ != '"') {
    fail_at(cursor_, "expected a key in double quotes");
    return false;
  }
  key = string();
  skip_space();
  if (cursor_ == end_ || *cursor_ != ':') {
    fail_at(cursor_, "expected ':'");
    return false;
  }
  ++cursor_;
  return !failed();
}

bool JsonReader::next_element() {
  if (failed() || !open_next(']')) return false;
  skip_space();
  if (cursor_ != end_ && *cursor_ != ']') return true;
  fail_at(cursor_, "expected a value behind ','");
  return false;
}

JsonString JsonReader::string() {
  if (failed()) return {};
  const char* const opening_quote = cursor_++;
  JsonString result;
  for (;;) {
    cursor_ = skip_plain(cursor_, end_);
    if (cursor_ == end_) {
      fail_at(opening_quote, "this string does not end");
      return {};
    }
    if (*cursor_ == '"') break;
    if (*cursor_ == '\\') result.has_escapes = true;
    if (!(*cursor_ == '\\' ? skip_escape() : skip_non_ascii())) return {};
  }
  result.raw = {opening_quote + 1, static_cast<size_t>(cursor_ - opening_quote - 1)};
  ++cursor_;
  return result;
}

bool JsonReader::skip_non_ascii() {
  if (static_cast<unsigned char>(*cursor_) < 0x20) {
    fail_at(cursor_, "a control character in a string must be escaped");
    return false;
  }
  const size_t length = utf8_sequence_length({cursor_, static_cast<size_t>(end_ - cursor_)});
  if (length == 0) {
    fail_at(cursor_, "this is not UTF-8");
    return false;
  }
  cursor_ += length;
  return true;
}

bool JsonReader::skip_hex4(uint32_t& unit) {
  const auto result = end_ - cursor_ >= 4 ? std::from_chars(cursor_, cursor_ + 4, unit, 16)
                                          : std::from_chars_result{cursor_, std::errc::invalid_argument};
  if (result.ec != std::errc{} || result.ptr != cursor_ + 4) {
    fail_at(cursor_, "\\u needs four hex digits");
    return false;
  }
  cursor_ += 4;
  return true;
}

bool JsonReader::skip_escape() {
  const char* const backslash = cursor_++;
  const char letter = cursor_ < end_ ? *cursor_++ : '\0';
  if (letter != 'u') {
    if (letter != '\0' && std::strchr("\"\\/bfnrt", letter) != nullptr) return true;
    fail_at(backslash, "there is no such escape in JSON");
    return false;
  }
  uint32_t unit = 0;
  if (!skip_hex4(unit)) return false;
  if (is_high_surrogate(unit)) {
    uint32_t low = 0;
    if (end_ - cursor_ < 2 || cursor_[0] != '\\' || cursor_[1] != 'u') {
      fail_at(backslash, "half of a surrogate pair");
      return false;
    }
    cursor_ += 2;
    if (!skip_hex4(low)) return false;
    if (is_low_surrogate(low)) return true;
  } else if (!is_low_surrogate(unit)) {
    return true;
  }
  fail_at(backslash, "half of a surrogate pair");
  return false;
}

bool JsonReader::skip_digits() {
  const char* const first = cursor_;
  while (cursor_ < end_ && is_digit(*cursor_)) ++cursor_;
  if (cursor_ != first) return true;
  fail_at(cursor_, "expected a digit");
  return false;
}

std::string_view JsonReader::number() {
  if (failed()) return {};
  const char* const first = cursor_;
  if (*cursor_ == '-') ++cursor_;
  const char* const integer = cursor_;
  if (!skip_digits()) return {};
  if (*integer == '0' && cursor_ - integer > 1) {
    fail_at(integer, "a number must not begin with 0");
    return {};
  }
  if (cursor_ < end_ && *cursor_ == '.') {
    ++cursor_;
    if (!skip_digits()) return {};
  }
  if (cursor_ < end_ && (*cursor_ == 'e' || *cursor_ == 'E')) {
    ++cursor_;
    if (cursor_ < end_ && (*cursor_ == '+' || *cursor_ == '-')) ++cursor_;
    if (!skip_digits()) return {};
  }
  return {first, static_cast<size_t>(cursor_ - first)};
}

void JsonReader::literal() {
  if (failed()) return;
  const std::string_view word = *cursor_ == 't' ? "true" : *cursor_ == 'f' ? "false" : "null";
  const std::string_view rest{cursor_, static_cast<size_t>(end_ - cursor_)};
  if (!rest.starts_with(word)) {
    fail_at(cursor_, "expected true, false or null");
    return;
  }
  cursor_ += word.size();
}

void JsonReader::skip_scalar(JsonKind kind) {
  if (kind == JsonKind::String) {
    string();
  } else if (kind == JsonKind::Number) {
    number();
  } else if (kind != JsonKind::Malformed) {
    literal();
  }
}

void JsonReader::skip_value() {
  bool is_object[kMaxDepth];
  uint32_t open = 0;
  JsonString key;
  do {
    const JsonKind kind = peek();
    if (kind == JsonKind::Object || kind == JsonKind::Array) {
      begin_container();
      if (failed()) return;
      is_object[open++] = kind == JsonKind::Object;
    } else {
      skip_scalar(kind);
    }
    while (open > 0 && !(is_object[open - 1] ? next_member(key) : next_element())) {
      if (failed()) return;
      --open;
    }
  } while (open > 0);
}

std::optional<uint64_t> json_unsigned(std::string_view number) {
  uint64_t value = 0;
  const char* const end = number.data() + number.size();
  const auto result = std::from_chars(number.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

namespace {

// Of a well-formed number that no double can hold: is it too large, not too small? Its decimal point, moved in front
// of its first digit that is not 0, tells.
bool is_huge(std::string_view number) {
  const size_t mark = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, mark);
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t first = std::min(digits.find_first_of("123456789"), digits.size());
  if (mark == number.size()) return first < point;
  // An exponent that fills 64 bits outweighs any digits.
  if (number[mark + 1] == '-') return false;
  return first < point || number.find_first_of("123456789", mark) != number.npos;
}

}  // namespace

std::optional<double> json_double(std::string_view number) {
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec == std::errc::result_out_of_range) return is_huge(number) ? std::nullopt : std::optional(0.0);
  if (result.ec != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace sentry_prof
