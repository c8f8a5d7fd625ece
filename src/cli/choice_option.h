// Options whose words stand for the values of an enumeration.
#pragma once

#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace sentry_prof::cli {

// The help shows the words; another word is wrong usage, told with all of them.
template <typename Enum>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Enum& target,
                        const std::map<std::string, Enum>& choices, const std::string& help) {
  std::string words;
  for (const auto& [word, value] : choices) words += (words.empty() ? "" : "|") + word;
  // Before parsing: what holds if the option is not given.
  const auto word_of_target = [&target, choices] {
    for (const auto& [word, value] : choices) {
      if (value == target) return word;
    }
    return std::string();
  };
  return app
      .add_option_function<std::string>(
          name,
          [&target, choices, words, name](const std::string& word) {
            const auto choice = choices.find(word);
            if (choice == choices.end()) {
              throw CLI::ValidationError(name, fmt::format("'{}' is not one of {}", word, words));
            }
            target = choice->second;
          },
          help)
      ->type_name(words)
      ->default_function(word_of_target);
}

}  // namespace sentry_prof::cli
