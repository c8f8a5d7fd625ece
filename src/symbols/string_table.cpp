#include "symbols/string_table.h"

#include <algorithm>

namespace sentry_prof::symbols {

std::optional<std::string_view> StringTable::at(uint32_t offset) {
  if (offset >= strings_.size_bytes) return std::nullopt;
  auto string = in_window(offset);
  if (!string && read_window(offset)) string = in_window(offset);
  return string && !string->empty() ? string : std::nullopt;
}

bool StringTable::read_window(uint64_t offset) {
  window_begin_ = offset;
  window_.resize(static_cast<size_t>(std::min(strings_.size_bytes - offset, kWindow_bytes)));
  const bool is_read =
      file_.read_at(strings_.file_offset + offset, std::as_writable_bytes(std::span(window_)));
  if (!is_read) window_.clear();
  return is_read;
}

// None if it does not begin there, or no end of it is there.
std::optional<std::string_view> StringTable::in_window(uint64_t offset) const {
  if (offset < window_begin_ || offset - window_begin_ >= window_.size()) return std::nullopt;
  const std::string_view rest = std::string_view(window_.data(), window_.size())
                                    .substr(static_cast<size_t>(offset - window_begin_));
  const std::string_view longest = rest.substr(0, kMaxString_bytes);
  const size_t end = longest.find('\0');
  if (end != std::string_view::npos) return longest.substr(0, end);
  return longest.size() == kMaxString_bytes ? std::optional(longest) : std::nullopt;
}

}  // namespace sentry_prof::symbols
