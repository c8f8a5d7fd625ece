#include "sentry/text_table.h"

#include <functional>

namespace sentry_prof::sentry {

uint32_t& TextTable::slot_of(std::string_view text) {
  const size_t mask = slots_.size() - 1;
  size_t at = std::hash<std::string_view>()(text) & mask;
  while (slots_[at] != 0 && texts_[slots_[at] - 1] != text) at = (at + 1) & mask;
  return slots_[at];
}

void TextTable::grow() {
  slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, 0);
  for (size_t i = 0; i < texts_.size(); ++i) {
    slot_of(texts_[i]) = static_cast<uint32_t>(i + 1);
  }
}

uint32_t TextTable::index_of(std::string_view text) {
  if (texts_.size() * 4 >= slots_.size() * 3) grow();
  uint32_t& slot = slot_of(text);
  if (slot == 0) {
    texts_.push_back(text);
    slot = static_cast<uint32_t>(texts_.size());
  }
  return slot - 1;
}

}  // namespace sentry_prof::sentry
