#include "sentry/json_path.h"

#include "sentry/text_places.h"

#include <algorithm>

namespace sentry_prof::sentry {

namespace {

constexpr size_t kKey_bytes = 200;

}  // namespace

std::string_view clipped(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit);
}

std::string JsonPath::pointer() const {
  std::string result;
  std::string buffer;
  for (size_t i = 0; i < std::min(count_, kMaxSteps); ++i) {
    result += '/';
    if (steps_[i].is_index) {
      result += std::to_string(steps_[i].index);
    } else {
      result += pointer_token(clipped(steps_[i].key.text(buffer), kKey_bytes));
    }
  }
  return result;
}

}  // namespace sentry_prof::sentry
