#include "cli/environment.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace sentry_prof::cli {

namespace {

constexpr std::array<std::string_view, 6> kYes = {"1", "true", "t", "yes", "y", "on"};

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_yes(std::string_view value) {
  std::string word(value);
  std::transform(word.begin(), word.end(), word.begin(), to_lower);
  return std::find(kYes.begin(), kYes.end(), word) != kYes.end();
}

}  // namespace sentry_prof::cli
