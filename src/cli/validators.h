// What values of options have to be, as CLI11 asks for it.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace sentry_prof::cli {

// Decimal numbers only: CLI11 would take 010 for 8 and attach to another process.
template <typename T>
bool parse_number(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

// CLI11 would print the bounds and the values of enumerations into the help; our help says them in
// words. The text of an integer becomes what CLI11 reads as the same number.
template <typename T>
CLI::Validator in_range(T low, T high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        T value{};
        if (parse_number(text, value) && value >= low && value <= high) {
          if constexpr (std::is_integral_v<T>) text = std::to_string(value);
          return std::string();
        }
        constexpr std::string_view kKind = std::is_integral_v<T> ? "a whole number" : "a number";
        return fmt::format("'{}' is not {} from {} to {}", text, kKind, low, high);
      },
      "");
}

inline CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) { return text.empty() ? "must not be empty" : std::string(); },
      "");
}

}  // namespace sentry_prof::cli
