// Text of protocols and settings, whatever the locale is.
#pragma once

#include <string>
#include <string_view>

namespace sentry_prof {

constexpr char to_lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string to_lower_ascii(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = to_lower_ascii(c);
  return result;
}

// `lower_case` has no capital letters.
constexpr bool equals_ignoring_case(std::string_view text, std::string_view lower_case) {
  if (text.size() != lower_case.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (to_lower_ascii(text[i]) != lower_case[i]) return false;
  }
  return true;
}

// Without the white space around it. The result is a part of `text`.
constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace sentry_prof
