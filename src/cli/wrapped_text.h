// Paragraphs for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace sentry_prof::cli {

// `head`, then `text` in lines of at most 100 columns that are indented as deep as `head` is wide,
// with a newline at the end. A word longer than that has a line of its own. ASCII; a newline in
// `text` begins a new line.
std::string wrapped(std::string_view head, std::string_view text);

}  // namespace sentry_prof::cli
