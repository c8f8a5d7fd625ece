// sentry-prof run to its end, and what it says.
#pragma once

#include "process.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sentry_prof::testing {

inline CommandResult run_sentry_prof(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), sentry_prof_path());
  return run_command({.arguments = std::move(arguments)});
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline void check_says(const CommandResult& result, const std::string& text) {
  INFO(result.standard_error);
  CHECK(result.standard_error.find(text) != std::string::npos);
}

inline bool exists(const std::string& path) { return std::filesystem::exists(path); }

inline size_t files_in(const TemporaryDirectory& directory) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    count += entry.exists() ? 1 : 0;
  }
  return count;
}

}  // namespace sentry_prof::testing
