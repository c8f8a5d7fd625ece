// UTF-8 (Unicode 15, section 3.9): names from kernels, targets and files are any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sentry_prof {

// Length in bytes (1..4) of the well-formed sequence at the start of `text`; 0 if there is none
// (empty, overlong, surrogate, above U+10FFFF, cut off, stray continuation byte).
size_t utf8_sequence_length(std::string_view text);

// How many bytes of `text`, which begins with an ill-formed sequence, one U+FFFD stands for: the
// maximal subpart, at least 1 (Unicode 15, table 3-8).
size_t utf8_bad_length(std::string_view text);

// How many characters at the start of `text` are ASCII and no control characters.
size_t printable_ascii_length(std::string_view text);

// `text` with U+FFFD in place of ill-formed sequences and of control characters (C0, DEL, C1):
// safe in JSON and on a terminal.
std::string printable_utf8(std::string_view text);

// At most `max_bytes` of the valid UTF-8 `text`, cut between characters; an ellipsis marks the cut.
std::string shortened_utf8(std::string_view text, size_t max_bytes);

// The same without its middle: a quarter from its begin and the rest from its end. Of a path the
// begin tells whose file it is and the end which one; of a function of a template the end is its
// own name.
std::string without_middle(std::string_view text, size_t max_bytes);

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

}  // namespace sentry_prof
