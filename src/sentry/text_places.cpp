#include "sentry/text_places.h"

#include "base/json_reader.h"

#include <algorithm>

namespace sentry_prof::sentry {

std::vector<size_t> element_offsets(std::string_view text, size_t array_offset,
                                    std::span<const size_t> indices) {
  std::vector<size_t> offsets(indices.size(), array_offset);
  JsonReader reader = JsonReader::at(text, array_offset);
  if (array_offset >= text.size() || reader.peek() != JsonKind::Array) return offsets;
  reader.begin_array();
  size_t found = 0;
  for (size_t index = 0; found < indices.size() && reader.next_element(); ++index) {
    for (; found < indices.size() && indices[found] == index; ++found) {
      offsets[found] = reader.offset();
    }
    reader.skip_value();
  }
  return offsets;
}

size_t member_offset(std::string_view text, size_t object_offset, std::string_view key) {
  JsonReader reader = JsonReader::at(text, object_offset);
  if (object_offset >= text.size() || reader.peek() != JsonKind::Object) return object_offset;
  reader.begin_object();
  for (JsonString found; reader.next_member(found); reader.skip_value()) {
    if (reader.peek() == JsonKind::Malformed) break;
    if (found.is(key)) return reader.offset();
  }
  return object_offset;
}

size_t path_offset(std::string_view text, std::initializer_list<std::string_view> keys) {
  JsonReader reader(text);
  if (reader.peek() == JsonKind::Malformed) return 0;
  size_t offset = reader.offset();
  for (const std::string_view key : keys) {
    const size_t value = member_offset(text, offset, key);
    if (value == offset) break;
    offset = value;
  }
  return offset;
}

std::string quoted(std::string_view text) {
  constexpr size_t kLongest = 64;
  size_t end = std::min(text.size(), kLongest);
  // Not between the bytes of a character.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  std::string result = "\"";
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  result += end < text.size() ? "...\"" : "\"";
  return result;
}

std::string pointer_token(std::string_view key) {
  std::string token;
  token.reserve(key.size());
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

}  // namespace sentry_prof::sentry
