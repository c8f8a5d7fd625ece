// Runs of sentry-prof that send: none may print the key of the DSN.
#pragma once

#include "command_line.h"
#include "process.h"
#include "recording.h"
#include "support/catch2.h"
#include "temporary_directory.h"

#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::testing {

// Lower case, so that it can be looked for in whatever case.
inline const std::string kKey = "c0ffee00c0ffee00c0ffee00c0ffee00";

inline std::string golden(const std::string& name) {
  return std::string(SENTRY_PROF_TEST_DATA) + "/golden_" + name + ".json";
}

inline size_t files_in(const std::string& directory) {
  const std::filesystem::directory_iterator files(directory);
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

// Of the text of an envelope or a profile; "" if there is none.
inline std::string member(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const size_t begin = json.find(key);
  if (begin == json.npos) return "";
  return json.substr(begin + key.size(), json.find('"', begin + key.size()) - begin - key.size());
}

inline bool shows_key(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  return contains(text, kKey);
}

// Every run of the tests of uploading goes through here.
inline CommandResult without_key(CommandResult result) {
  INFO(result.standard_error);
  CHECK_FALSE(shows_key(result.standard_output));
  CHECK_FALSE(shows_key(result.standard_error));
  CHECK_FALSE(result.timed_out);
  return result;
}

// In `directory`, which is also its home; nothing of this machine's configuration holds.
inline Command sentry_prof_in(const TemporaryDirectory& directory,
                              std::vector<std::string> arguments,
                              std::map<std::string, std::string> environment = {}) {
  environment.insert({"HOME", directory.path()});
  for (const char* name :
       {"SENTRY_DSN", "SENTRY_DEBUG", "SENTRY_SPOTLIGHT", "CURL_CA_BUNDLE", "SSL_CERT_FILE",
        "SSL_CERT_DIR", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    environment.insert({name, ""});
  }
  arguments.insert(arguments.begin(), sentry_prof_path());
  return {.arguments = std::move(arguments),
          .environment = std::move(environment),
          .directory = directory.path(),
          .time_out_s = 60};
}

inline CommandResult run_sentry_prof(std::vector<std::string> arguments,
                                     const TemporaryDirectory& directory,
                                     std::map<std::string, std::string> environment = {}) {
  return without_key(
      run_command(sentry_prof_in(directory, std::move(arguments), std::move(environment))));
}

}  // namespace sentry_prof::testing
