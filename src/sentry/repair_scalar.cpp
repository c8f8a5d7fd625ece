#include "sentry/repair_scalar.h"

#include "sentry/scalar_forms.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

using Mended = std::optional<MendedScalar>;

std::string in_quotes(std::string_view plain) { return fmt::format("\"{}\"", plain); }

// "12" and "12.0" as "12"; anything else is no integer from 0 on.
std::string_view integer_digits(std::string_view number) {
  const size_t point = std::min(number.find('.'), number.size());
  const std::string_view digits = number.substr(0, point);
  const std::string_view fraction = number.substr(std::min(point + 1, number.size()));
  const bool is_whole = fraction.find_first_not_of('0') == fraction.npos;
  return is_whole && json_unsigned(digits) ? digits : std::string_view();
}

// As JSON writes it: no sign, no leading zero.
bool is_json_integer(std::string_view text) {
  if (text.empty() || text.size() > 20 || (text.size() > 1 && text[0] == '0')) return false;
  return text.find_first_not_of("0123456789") == text.npos && json_unsigned(text).has_value();
}

bool is_json_number(std::string_view text) {
  JsonReader reader(text);
  return !text.empty() && reader.peek() == JsonKind::Number && reader.number() == text &&
         !reader.failed() && json_double(text).has_value();
}

Mended mend_integer(Form form, const Scalar& scalar, std::string_view text) {
  const bool is_text = scalar.kind == JsonKind::String;
  if (is_text && !is_json_integer(text)) return {};
  const std::string_view digits = is_text ? text : integer_digits(scalar.number);
  if (digits.empty() || (!is_text && digits.size() == scalar.number.size())) return {};
  const uint64_t value = json_unsigned(digits).value_or(0);
  if (form == Form::U32 && value > std::numeric_limits<uint32_t>::max()) return {};
  return MendedScalar{std::string(digits), is_text ? Change::StringToNumber : Change::WholeNumber};
}

// The documents want these as strings, of others only the server's taste is known.
bool is_documented_as_text(Slot slot) {
  return slot == Slot::Elapsed || slot == Slot::ThreadId || slot == Slot::ActiveThread;
}

Mended mend_unsigned_or_text(Slot slot, const Scalar& scalar, std::string_view text) {
  if (!is_documented_as_text(slot)) {
    return scalar.kind == JsonKind::Number ? mend_integer(Form::Index, scalar, text) : Mended();
  }
  if (scalar.kind == JsonKind::String) {
    const bool has_plus = text.starts_with('+') && parse_unsigned_text(text).has_value();
    return has_plus ? Mended({in_quotes(text.substr(1)), Change::NumberToString}) : Mended();
  }
  const std::string_view digits = integer_digits(scalar.number);
  if (digits.empty()) return {};
  return MendedScalar{in_quotes(digits), Change::NumberToString};
}

Mended mend_address(const Scalar& scalar, std::string_view text) {
  std::optional<uint64_t> address;
  if (scalar.kind == JsonKind::Number) {
    address = json_unsigned(scalar.number);
  } else if (!is_hex_address(text)) {
    address = parse_address(text);
  }
  if (!address) return {};
  return MendedScalar{fmt::format("\"{:#x}\"", *address), Change::Address};
}

Mended mend_id(Slot slot, std::string_view text) {
  const bool is_listed = slot == Slot::EventId || slot == Slot::SessionId ||
                         slot == Slot::TransactionId || slot == Slot::TraceId;
  const auto uuid = parse_uuid(text);
  if (!is_listed || !uuid || is_plain_id(text)) return {};
  return MendedScalar{in_quotes(uuid->to_hex()), Change::Id};
}

Mended mend_debug_id(std::string_view text) {
  const auto form = parse_debug_id(text);
  if (!form || form->has_dashes) return {};
  return MendedScalar{fmt::format("\"{}-{}-{}-{}-{}{}{}\"", text.substr(0, 8), text.substr(8, 4),
                                  text.substr(12, 4), text.substr(16, 4), text.substr(20, 12),
                                  form->has_age ? "-" : "", text.substr(32)),
                      Change::DebugId};
}

}  // namespace

std::optional<MendedScalar> mend_scalar(const Field& field, const Scalar& scalar,
                                        std::string_view own_version) {
  const bool is_number = scalar.kind == JsonKind::Number;
  std::string buffer;
  const std::string_view text = is_number ? std::string_view() : scalar.string.text(buffer);
  switch (field.form) {
    case Form::Index:
    case Form::U32:
      return mend_integer(field.form, scalar, text);
    case Form::UnsignedOrText:
      return mend_unsigned_or_text(field.slot, scalar, text);
    case Form::Address:
      return mend_address(scalar, text);
    case Form::Number:
      if (is_number || !is_json_number(text)) return {};
      return MendedScalar{std::string(text), Change::StringToNumber};
    case Form::Text:
      if (!is_number || field.slot != Slot::ThreadId || !json_unsigned(scalar.number)) return {};
      return MendedScalar{in_quotes(scalar.number), Change::NumberToString};
    case Form::Version:
      if (!is_number || scalar.number != own_version) return {};
      return MendedScalar{in_quotes(scalar.number), Change::NumberToString};
    case Form::Uuid:
      return is_number ? Mended() : mend_id(field.slot, text);
    case Form::DebugId:
      return is_number ? Mended() : mend_debug_id(text);
    default:
      return {};
  }
}

bool is_bare_hex_address(const Scalar& scalar) {
  std::string buffer;
  if (scalar.kind != JsonKind::String) return false;
  const std::string_view text = scalar.string.text(buffer);
  return !parse_address(text) && is_hex_text(text);
}

bool is_decimal_address(const Scalar& scalar) {
  std::string buffer;
  if (scalar.kind != JsonKind::String) return false;
  const std::string_view text = scalar.string.text(buffer);
  return !is_hex_address(text) && parse_address(text).has_value() && !text.starts_with("0x") &&
         !text.starts_with("0X");
}

}  // namespace sentry_prof::sentry
