// The text of a config file: lines "name = value", those of TOML and INI that mean the same in
// both.
//
//   # a comment, also behind ';' at the beginning of a line
//   [record]
//   release   = "v1 #2"      quoted: \" and \\ stand for " and \ .
//   transaction = 'C:\x'     quoted: as it is
//   environment = my env     else whole, up to a '#' behind a blank
//   pid       = [12, "34"]   a list, on one line
#pragma once

#include "sentry_prof/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::cli {

struct ConfigSetting {
  std::string section;  // empty: before any
  std::string name;
  std::vector<std::string> values;  // one, but of a list
  size_t line = 0;                  // from 1
};

// `file_name` is for messages, which begin with it and the line and never quote a value. Malformed
// for a line of another form, a name that stands twice in a section, a control character.
Result<std::vector<ConfigSetting>> read_config(std::string_view text, const std::string& file_name);

}  // namespace sentry_prof::cli
