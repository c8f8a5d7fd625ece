#include "profile/bounded_text.h"

#include "base/utf8.h"
#include "profile/chunk_builder.h"

#include <algorithm>

namespace sentry_prof::profile {
namespace {

bool is_escaped(char c) { return c == '"' || c == '\\'; }

// At most `max_bytes` from the end of valid UTF-8, whole characters.
std::string_view tail_of(std::string_view text, size_t max_bytes) {
  size_t begin = text.size() - std::min(text.size(), max_bytes);
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  return text.substr(begin);
}

std::string without_middle(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const size_t head_bytes = max_bytes / 4;
  std::string result = shortened_utf8(text, head_bytes);
  return result += tail_of(text, max_bytes - head_bytes);
}

}  // namespace

size_t json_text_bytes(std::string_view printable) {
  return printable.size() +
         static_cast<size_t>(std::count_if(printable.begin(), printable.end(), is_escaped));
}

std::string shortened_for_json(std::string_view printable, size_t max_json_bytes) {
  std::string text = shortened_utf8(printable, max_json_bytes);
  if (json_text_bytes(text) <= max_json_bytes) return text;
  return shortened_utf8(printable, max_json_bytes / 2);  // though every character is escaped
}

std::string bounded_path(std::string_view path) {
  const std::string printable = printable_utf8(path);
  std::string text = without_middle(printable, kImagePath_bytes);
  if (json_text_bytes(text) <= kImagePath_bytes) return text;
  return without_middle(printable, kImagePath_bytes / 2);
}

}  // namespace sentry_prof::profile
