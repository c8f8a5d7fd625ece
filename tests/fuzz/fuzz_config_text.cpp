// Config files: what is read of one has names and values that can be shown and passed on, each name
// once in its section, and says the same when it is written out quoted. A refusal says where.
#include "cli/config_text.h"
#include "fuzz/require.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sentry_prof;
using fuzz::require;
using namespace sentry_prof::cli;

namespace {

const std::string kFile = "f";

bool has_control_character(std::string_view text) {
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f') return true;
  }
  return false;
}

std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string written_out(const std::vector<ConfigSetting>& settings) {
  std::string text, section;
  for (const ConfigSetting& setting : settings) {
    if (setting.section != section) text += "[" + setting.section + "]\n";
    section = setting.section;
    text += setting.name + " = [";
    for (const std::string& value : setting.values) text += quoted(value) + ", ";
    text += "]\n";
  }
  return text;
}

void check(const std::vector<ConfigSetting>& settings) {
  std::set<std::pair<std::string, std::string>> names;
  size_t line = 0;
  for (const ConfigSetting& setting : settings) {
    require(!setting.name.empty());
    require(names.emplace(setting.section, setting.name).second);
    require(setting.line > line);
    line = setting.line;
    for (const std::string& value : setting.values) require(!has_control_character(value));
  }
  const auto again = read_config(written_out(settings), kFile);
  require(again.has_value() && again->size() == settings.size());
  for (size_t i = 0; i < settings.size(); ++i) {
    require((*again)[i].section == settings[i].section && (*again)[i].name == settings[i].name);
    require((*again)[i].values == settings[i].values);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto settings = read_config(text, kFile);
  if (settings) {
    check(*settings);
  } else {
    require(settings.error().message.starts_with("f:"));
    require(!has_control_character(settings.error().message));
  }
  return 0;
}
