#include "cli/wrapped_text.h"

#include <algorithm>

namespace sentry_prof::cli {

namespace {
constexpr size_t kColumns = 100;
}

std::string wrapped(std::string_view head, std::string_view text) {
  const std::string indent(head.size(), ' ');
  std::string out(head);
  size_t column = head.size();
  bool begins_line = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    const bool breaks = end < text.size() && text[end] == '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!begins_line && column + 1 + word.size() > kColumns) {
      (out += '\n') += indent;
      column = indent.size();
      begins_line = true;
    }
    if (!begins_line) out += ' ';
    out += word;
    column += word.size() + (begins_line ? 0 : 1);
    begins_line = false;
    if (breaks) {
      (out += '\n') += indent;
      column = indent.size();
      begins_line = true;
    }
  }
  out += '\n';
  return out;
}

}  // namespace sentry_prof::cli
