#include "base/json_reader.h"

#include "base/utf8.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace sentry_prof {

namespace {

using json_words::is_digit;

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

bool is_high_surrogate(uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }

bool is_low_surrogate(uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

char plain_escape(char letter) {
  switch (letter) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return letter;
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
  // An escape is at most six times as long as what it stands for.
  if (raw.size() / 6 > plain.size()) return false;
  std::string buffer;
  return text(buffer) == plain;
}

JsonReader JsonReader::at(std::string_view text, size_t offset) {
  JsonReader reader(text);
  reader.cursor_ += offset;
  return reader;
}

bool JsonReader::fail_at(const char* where, const char* what, JsonFault::Kind kind) {
  if (!fault_) fault_ = JsonFault{static_cast<size_t>(where - begin_), what, kind};
  cursor_ = end_;
  return false;
}

void JsonReader::skip_more_space() {
  while (cursor_ != end_ &&
         (*cursor_ == ' ' || *cursor_ == '\n' || *cursor_ == '\t' || *cursor_ == '\r'))
    ++cursor_;
}

JsonKind JsonReader::peek() {
  skip_space();
  if (failed()) return JsonKind::Malformed;
  if (cursor_ == end_) {
    fail_at(cursor_, "the text ends where a value should be");
    return JsonKind::Malformed;
  }
  switch (*cursor_) {
    case '{':
      return JsonKind::Object;
    case '[':
      return JsonKind::Array;
    case '"':
      return JsonKind::String;
    case 't':
      return JsonKind::True;
    case 'f':
      return JsonKind::False;
    case 'n':
      return JsonKind::Null;
    default:
      break;
  }
  if (*cursor_ == '-' || is_digit(*cursor_)) return JsonKind::Number;
  fail_at(cursor_, "this begins no JSON value");
  return JsonKind::Malformed;
}

bool JsonReader::open_first_or_close(char close) {
  if (cursor_ == end_) return fail_at(cursor_, "the text ends inside an object or array");
  if (*cursor_ == close) {
    ++cursor_;
    --depth_;
    is_first_ = false;
    return false;
  }
  if (!is_first_)
    return fail_at(cursor_, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
  is_first_ = false;
  return true;
}

bool JsonReader::next_member(JsonString& key) {
  if (!open_next('}')) return false;
  if (!is_next('"')) return fail_at(cursor_, "expected a key in double quotes");
  key = string();
  skip_space();
  if (!is_next(':')) return fail_at(cursor_, "expected ':'");
  ++cursor_;
  return true;
}

bool JsonReader::skip_special(bool& has_escapes) {
  if (*cursor_ == '\\') {
    has_escapes = true;
    return skip_escape();
  }
  if (static_cast<unsigned char>(*cursor_) < 0x20) {
    return fail_at(cursor_, "a control character in a string must be escaped");
  }
  const size_t length = utf8_sequence_length({cursor_, static_cast<size_t>(end_ - cursor_)});
  if (length == 0) return fail_at(cursor_, "this is not UTF-8", JsonFault::Kind::Utf8);
  cursor_ += length;
  return true;
}

bool JsonReader::skip_hex4(uint32_t& unit) {
  const auto result = end_ - cursor_ >= 4
                          ? std::from_chars(cursor_, cursor_ + 4, unit, 16)
                          : std::from_chars_result{cursor_, std::errc::invalid_argument};
  if (result.ec != std::errc{} || result.ptr != cursor_ + 4)
    return fail_at(cursor_, "\\u needs four hex digits");
  cursor_ += 4;
  return true;
}

bool JsonReader::skip_escape() {
  const char* const backslash = cursor_++;
  const char letter = cursor_ != end_ ? *cursor_++ : '\0';
  if (letter != 'u') {
    if (letter != '\0' && std::strchr("\"\\/bfnrt", letter) != nullptr) return true;
    return fail_at(backslash, "there is no such escape in JSON");
  }
  uint32_t unit = 0;
  if (!skip_hex4(unit)) return false;
  if (!is_high_surrogate(unit))
    return !is_low_surrogate(unit) || fail_at(backslash, "half of a surrogate pair");
  if (end_ - cursor_ < 2 || cursor_[0] != '\\' || cursor_[1] != 'u')
    return fail_at(backslash, "half of a surrogate pair");
  cursor_ += 2;
  if (!skip_hex4(unit)) return false;
  return is_low_surrogate(unit) || fail_at(backslash, "half of a surrogate pair");
}

bool JsonReader::skip_digits() {
  const char* const first = cursor_;
  while (cursor_ != end_ && is_digit(*cursor_)) ++cursor_;
  return cursor_ != first || fail_at(cursor_, "expected a digit");
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
  if (is_next('.')) {
    ++cursor_;
    if (!skip_digits()) return {};
  }
  if (is_next('e') || is_next('E')) {
    ++cursor_;
    if (is_next('+') || is_next('-')) ++cursor_;
    if (!skip_digits()) return {};
  }
  return {first, static_cast<size_t>(cursor_ - first)};
}

bool JsonReader::try_long_unsigned(uint64_t& value) {
  if (cursor_ == end_ || !is_digit(*cursor_)) return false;
  const char* const first = cursor_;
  const std::optional<uint64_t> read = json_unsigned(number());
  if (read) value = *read;
  if (!read && !failed()) cursor_ = first;
  return read.has_value();
}

namespace {

// Appends the digits at `at` to `value`, which wraps beyond 19 of them. False if the text ends too
// near to look at eight bytes.
bool add_digits(const char*& at, const char* end, uint64_t& value) {
  static constexpr uint64_t kPowersOfTen[] = {1,      10,      100,      1000,     10000,
                                              100000, 1000000, 10000000, 100000000};
  unsigned count = 8;
  while (count == 8) {
    if (end - at < 8) return false;
    const uint64_t word = json_words::load_8(at);
    count = json_words::digits_of_8(word);
    if (count > 0) value = value * kPowersOfTen[count] + json_words::value_of_digits(word, count);
    at += count;
  }
  return true;
}

}  // namespace

// A time stamp's shape: digits, a point, a few digits more. A whole number below 2^53 and a power
// of ten up to 10^9 are doubles without loss, so that their quotient is rounded once, to the
// nearest.
bool JsonReader::try_short_decimal(double& value) {
  static constexpr double kPowersOfTen[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
  const char* at = cursor_;
  uint64_t digits = 0;
  if (!add_digits(at, end_, digits) || at == cursor_ || *at != '.' ||
      (*cursor_ == '0' && at - cursor_ > 1))
    return false;
  const char* const fraction = ++at;
  if (!add_digits(at, end_, digits) || at == fraction || at - fraction > 9 || at - cursor_ > 19)
    return false;
  if (digits >> 53 != 0 || (*at | 0x20) == 'e') return false;
  value = static_cast<double>(digits) / kPowersOfTen[at - fraction];
  cursor_ = at;
  return true;
}

bool JsonReader::try_double(double& value) {
  skip_space();
  if (try_short_decimal(value)) return true;
  if (cursor_ == end_ || (*cursor_ != '-' && !is_digit(*cursor_))) return false;
  const char* const first = cursor_;
  const std::string_view text = number();
  if (failed()) return false;
  const std::optional<double> read = json_double(text);
  if (read) value = *read;
  if (!read) cursor_ = first;
  return read.has_value();
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

// What stands behind the 'e'; beyond 62 bits it outweighs any digits all the same.
int64_t exponent_of(std::string_view digits) {
  constexpr int64_t kMost = int64_t{1} << 62;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int64_t exponent = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (result.ec == std::errc::result_out_of_range) return digits[0] == '-' ? -kMost : kMost;
  return std::clamp(exponent, -kMost, kMost);
}

// Of a well-formed number that no double can hold: is it too large, not too small? The place of its
// first digit that is not 0, counted from the decimal point, tells.
bool is_huge(std::string_view number) {
  const size_t mark = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, mark);
  const size_t first = digits.find_first_of("123456789");
  if (first == digits.npos) return false;
  const size_t point = std::min(digits.find('.'), digits.size());
  const int64_t place = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  return place + (mark == number.size() ? 0 : exponent_of(number.substr(mark + 1))) > 0;
}

}  // namespace

std::optional<double> json_double(std::string_view number) {
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec == std::errc::result_out_of_range)
    return is_huge(number) ? std::nullopt : std::optional(0.0);
  if (result.ec != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace sentry_prof
