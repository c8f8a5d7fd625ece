// One value of a JSON text that is no object or array, and whether it has the form that a field
// asks for.
#pragma once

#include "base/json_reader.h"
#include "sentry/field_tables.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

struct Scalar {
  JsonKind kind = JsonKind::Null;
  JsonString string;  // of a String
  std::string_view
      number;  // of a Number, as it stands in the text; empty if it has been read into one of:
  uint64_t unsigned_value = 0;
  double double_value = 0;
  size_t offset = 0;  // of the value or of white space in front of it
};

// Precondition: `kind` is what the reader's peek() returned, and is no object, array or malformed.
Scalar read_scalar(JsonReader& reader, JsonKind kind);

// Has it that form? Fills in the value of those that have one. `buffer` is for escapes.
bool has_form(Form form, Scalar& scalar, std::string& buffer);

// "an integer from 0 to 4294967295", for messages.
std::string_view describe(Form form);
// "the number 1.5", "the string \"x\"", "null", "an array".
std::string describe(JsonKind kind, const Scalar& scalar);

}  // namespace sentry_prof::sentry
