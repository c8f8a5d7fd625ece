#include "profile/bounded_text.h"

#include "base/utf8.h"
#include "profile/chunk_builder.h"

#include <algorithm>

namespace sentry_prof::profile {
namespace {

bool is_escaped(char c) { return c == '"' || c == '\\'; }

}  // namespace

size_t json_text_bytes(std::string_view printable) {
  return printable.size() +
         static_cast<size_t>(std::count_if(printable.begin(), printable.end(), is_escaped));
}

std::string shortened_for_json(std::string_view printable, size_t max_json_bytes) {
  std::string text = without_middle(printable, max_json_bytes);
  if (json_text_bytes(text) <= max_json_bytes) return text;
  return without_middle(printable, max_json_bytes / 2);  // though every character is escaped
}

std::string bounded_path(std::string_view path) {
  return shortened_for_json(printable_utf8(path), kImagePath_bytes);
}

}  // namespace sentry_prof::profile
