#include "sentry/scalar.h"

#include "sentry/json_path.h"
#include "sentry/rfc3339.h"
#include "sentry/scalar_forms.h"
#include "sentry/text_places.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace sentry_prof::sentry {

namespace {

bool read_unsigned(Scalar& scalar, uint64_t largest) {
  if (scalar.kind != JsonKind::Number) return false;
  if (!scalar.number.empty()) {
    const auto value = json_unsigned(scalar.number);
    if (!value) return false;
    scalar.unsigned_value = *value;
  }
  return scalar.unsigned_value <= largest;
}

bool read_double(Scalar& scalar) {
  if (scalar.kind != JsonKind::Number) return false;
  if (scalar.number.empty()) return true;
  const auto value = json_double(scalar.number);
  if (value) scalar.double_value = *value;
  return value.has_value();
}

bool read_unsigned_or_text(Scalar& scalar, std::string& buffer) {
  if (scalar.kind != JsonKind::String) return read_unsigned(scalar, UINT64_MAX);
  const auto value = parse_unsigned_text(scalar.string.text(buffer));
  if (value) scalar.unsigned_value = *value;
  return value.has_value();
}

bool is_unit(std::string_view text) {
  static constexpr std::string_view kUnits[] = {"nanosecond", "ns",      "hertz",     "hz",
                                                "byte",       "percent", "nanojoule", "nj"};
  return std::find(std::begin(kUnits), std::end(kUnits), text) != std::end(kUnits);
}

bool has_text_form(Form form, Scalar& scalar, std::string_view text) {
  switch (form) {
    case Form::Uuid:
      return parse_uuid(text).has_value();
    case Form::DebugId:
      return parse_debug_id(text).has_value();
    case Form::Time:
      return read_rfc3339(text).has_value();
    case Form::Version:
      return text == "1" || text == "2";
    case Form::Unit:
      return is_unit(text);
    case Form::Address: {
      const auto address = parse_address(text);
      if (address) scalar.unsigned_value = *address;
      return address.has_value();
    }
    default:
      return form == Form::Text;
  }
}

}  // namespace

Scalar read_scalar(JsonReader& reader, JsonKind kind) {
  Scalar scalar;
  scalar.kind = kind;
  scalar.offset = reader.offset();
  if (kind == JsonKind::String) {
    scalar.string = reader.string();
  } else if (kind == JsonKind::Number) {
    scalar.number = reader.number();
  } else {
    reader.literal();
  }
  return scalar;
}

bool has_form(Form form, Scalar& scalar, std::string& buffer) {
  switch (form) {
    case Form::Anything:
      return true;
    case Form::Text:
      return scalar.kind == JsonKind::String;
    case Form::Bool:
      return scalar.kind == JsonKind::True || scalar.kind == JsonKind::False;
    case Form::U32:
      return read_unsigned(scalar, std::numeric_limits<uint32_t>::max());
    case Form::Index:
      return read_unsigned(scalar, std::numeric_limits<uint64_t>::max());
    case Form::Number:
      return read_double(scalar);
    case Form::UnsignedOrText:
      return read_unsigned_or_text(scalar, buffer);
    case Form::NumberOrText:
      return scalar.kind == JsonKind::String ? is_float_text(scalar.string.text(buffer))
                                             : read_double(scalar);
    default:
      break;
  }
  if (scalar.kind != JsonKind::String) return false;
  return has_text_form(form, scalar, scalar.string.text(buffer));
}

std::string_view describe(Form form) {
  switch (form) {
    case Form::Anything:
      return "a value";
    case Form::Text:
      return "a string";
    case Form::Bool:
      return "true or false";
    case Form::U32:
      return "an integer from 0 to 4294967295";
    case Form::Index:
      return "an integer from 0 on";
    case Form::Number:
    case Form::NumberOrText:
      return "a number that fits a 64-bit float";
    case Form::UnsignedOrText:
      return "an integer from 0 to 18446744073709551615 in a string";
    case Form::Uuid:
      return "a string of 32 hex digits";
    case Form::DebugId:
      return "a UUID in a string, such as \"e20a2268-5dc6-c165-b6aa-a12fa6765a6e\"";
    case Form::Address:
      return "a hex address in a string, such as \"0x7f5140527000\"";
    case Form::Time:
      return "an RFC 3339 time in a string, such as \"2026-01-15T12:00:00.000Z\"";
    case Form::Version:
      return "the string \"1\" or \"2\"";
    case Form::Unit:
      return "a unit: nanosecond, hertz, byte or percent";
    case Form::Object:
    case Form::Map:
      return "an object";
    case Form::TextMap:
      return "an object of strings";
    case Form::List:
      return "an array of objects";
    case Form::Stacks:
      return "an array of arrays of frame indices";
  }
  return "a value";
}

std::string describe(JsonKind kind, const Scalar& scalar) {
  std::string buffer;
  switch (kind) {
    case JsonKind::Object:
      return "an object";
    case JsonKind::Array:
      return "an array";
    case JsonKind::String:
      return "the string " + quoted(scalar.string.text(buffer));
    case JsonKind::Number:
      return "the number " + (scalar.number.empty() ? std::to_string(scalar.unsigned_value)
                                                    : std::string(clipped(scalar.number, 60)));
    case JsonKind::True:
      return "true";
    case JsonKind::False:
      return "false";
    default:
      return "null";
  }
}

}  // namespace sentry_prof::sentry
