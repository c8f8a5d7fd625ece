// Whole texts before the reader: taken, or a fault and where.
#pragma once

#include "base/json_reader.h"
#include "support/catch2.h"

#include <string>
#include <string_view>

namespace sentry_prof::test {

// What stands behind the document's one value, or the fault.
struct Outcome {
  bool failed = false;
  size_t offset = 0;
  std::string what;
};

inline Outcome skip_all(std::string_view text) {
  JsonReader reader(text);
  reader.skip_value();
  if (reader.failed()) return {true, reader.fault()->offset, reader.fault()->what};
  return {false, reader.offset(), ""};
}

inline bool fails_at(std::string_view text, size_t offset, std::string_view part_of_message) {
  const Outcome outcome = skip_all(text);
  INFO(text);
  INFO(outcome.what);
  CHECK(outcome.offset == offset);
  return outcome.failed && outcome.what.find(part_of_message) != std::string::npos;
}

inline bool accepts(std::string_view text) {
  const Outcome outcome = skip_all(text);
  INFO(text);
  INFO(outcome.what);
  return !outcome.failed && outcome.offset == text.size();
}

}  // namespace sentry_prof::test
