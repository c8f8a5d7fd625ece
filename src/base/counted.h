// Numbers of things, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sentry_prof {

// "1 sample", "7 samples". Of nouns whose plural is an s.
inline std::string counted(uint64_t count, std::string_view noun) {
  std::string text = std::to_string(count);
  text.append(" ").append(noun);
  if (count != 1) text.push_back('s');
  return text;
}

}  // namespace sentry_prof
