#include "sentry/scalar_forms.h"

#include <algorithm>
#include <charconv>

namespace sentry_prof::sentry {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_lower_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

bool is_hex(char c) { return is_lower_hex(c) || (c >= 'A' && c <= 'F'); }

uint8_t hex_value(char c) {
  return static_cast<uint8_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
}

std::optional<Uuid> parse_hex32(std::string_view text) {
  if (text.size() != 32 || !std::all_of(text.begin(), text.end(), is_hex)) return std::nullopt;
  Uuid uuid;
  for (size_t i = 0; i < 16; ++i) {
    uuid.bytes[i] = static_cast<uint8_t>(hex_value(text[2 * i]) << 4 | hex_value(text[2 * i + 1]));
  }
  return uuid;
}

std::optional<Uuid> parse_dashed(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  char digits[32];
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash && text[i] != '-') return std::nullopt;
    if (!is_dash) digits[count++] = text[i];
  }
  return parse_hex32({digits, sizeof digits});
}

// Digits of `base` alone; a leading '+' is fine, as in Rust.
std::optional<uint64_t> parse_digits(std::string_view text, int base) {
  if (text.starts_with('+')) text.remove_prefix(1);
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

bool has_hex_prefix(std::string_view text) {
  return text.starts_with("0x") || text.starts_with("0X");
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a | 0x20) : a) == b;
  });
}

size_t count_digits(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

}  // namespace

std::optional<Uuid> parse_uuid(std::string_view text) {
  constexpr std::string_view kUrn = "urn:uuid:";
  if (text.size() == 32) return parse_hex32(text);
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') {
    return parse_dashed(text.substr(1, 36));
  }
  if (text.starts_with(kUrn)) text.remove_prefix(kUrn.size());
  return parse_dashed(text);
}

bool is_plain_id(std::string_view text) { return text.size() == 32 && is_lower_hex_text(text); }

bool is_random_uuid(const Uuid& uuid) { return uuid.bytes[6] >> 4 == 4 && uuid.bytes[8] >> 6 == 2; }

std::optional<DebugIdForm> parse_debug_id(std::string_view text) {
  DebugIdForm form;
  form.has_dashes = text.size() > 8 && text[8] == '-';
  const size_t uuid_length = form.has_dashes ? 36 : 32;
  if (text.size() < uuid_length) return std::nullopt;
  const auto uuid = parse_uuid(text.substr(0, uuid_length));
  if (!uuid) return std::nullopt;
  form.uuid = *uuid;
  std::string_view age = text.substr(uuid_length);
  if (age.empty()) return form;
  if (form.has_dashes != (age.front() == '-')) return std::nullopt;
  if (form.has_dashes) age.remove_prefix(1);
  if (age.size() > (form.has_dashes ? 8U : 7U) || !is_hex_text(age)) return std::nullopt;
  form.has_age = true;
  return form;
}

std::optional<uint64_t> parse_unsigned_text(std::string_view text) {
  return parse_digits(text, 10);
}

bool is_float_text(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  if (equals_ignoring_case(text, "inf") || equals_ignoring_case(text, "infinity") ||
      equals_ignoring_case(text, "nan")) {
    return true;
  }
  const size_t whole = count_digits(text);
  text.remove_prefix(whole);
  size_t fraction = 0;
  if (text.starts_with('.')) {
    fraction = count_digits(text.substr(1));
    text.remove_prefix(1 + fraction);
  }
  if (whole + fraction == 0) return false;
  if (text.empty()) return true;
  if ((text.front() | 0x20) != 'e') return false;
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && count_digits(text) == text.size();
}

std::optional<uint64_t> parse_address(std::string_view text) {
  return has_hex_prefix(text) ? parse_digits(text.substr(2), 16) : parse_digits(text, 10);
}

bool is_hex_address(std::string_view text) {
  return has_hex_prefix(text) && is_hex_text(text.substr(2));
}

bool is_hex_text(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_hex);
}

bool is_lower_hex_text(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_lower_hex);
}

}  // namespace sentry_prof::sentry
