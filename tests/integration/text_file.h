// Files of text, read and written whole.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace sentry_prof::testing {

// Empty if there is none.
inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

inline void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace sentry_prof::testing
