#include "cli/config_file.h"

#include "base/utf8.h"
#include "cli/config_text.h"
#include "cli/dsn_source.h"
#include "cli/environment.h"
#include "cli/message.h"
#include "cli/validators.h"
#include "os/input_file.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

constexpr const char* kDefault = "default";
constexpr const char* kNone = "(none)";
constexpr size_t kMaxConfig_bytes = 64 * 1024;  // a line for each option, and comments

// Options that make no sense in a file, and those for looking for bugs: what is recorded anew at
// each start may not silently hold copies of stacks, or be another recording.
bool is_for_command_line_only(const std::string& name) {
  return name == "config" || name == "print-config" || name == "help" || name == "raw-log" ||
         name == "replay";
}

using Settings = std::vector<ConfigSetting>;

Result<Settings> read_settings(const std::string& path) {
  const auto text = os::read_input(path, kMaxConfig_bytes);
  if (!text) return fail(text.error().code, "--config: " + text.error().message);
  return read_config(*text, "--config " + path);
}

// Sections are named after subcommands.
bool is_known_section(const std::string& section, const CLI::App& subcommand) {
  const auto all = subcommand.get_parent()->get_subcommands({});
  return section.empty() || std::any_of(all.begin(), all.end(), [&](const CLI::App* one) {
           return one->get_name() == section;
         });
}

// What stands before any section may be meant for another subcommand.
bool is_option_of_another(const ConfigSetting& setting, const CLI::App& subcommand) {
  const auto all = subcommand.get_parent()->get_subcommands({});
  return setting.section.empty() && std::any_of(all.begin(), all.end(), [&](const CLI::App* one) {
           return one->get_option_no_throw("--" + setting.name) != nullptr;
         });
}

// The subcommand's own section wins over what stands before any.
bool is_in_section(const Settings& settings, const std::string& section, const std::string& name) {
  return std::any_of(settings.begin(), settings.end(), [&](const ConfigSetting& setting) {
    return setting.section == section && setting.name == name;
  });
}

// What each of them says, or its opposite, the other says, too.
struct Alternative {
  std::string_view option, other;
};
constexpr std::array<Alternative, 4> kAlternatives = {
    {{"dsn", "dsn-file"}, {"dsn-file", "dsn"}, {"quiet", "verbose"}, {"verbose", "quiet"}}};

std::string result_of(const CLI::App& subcommand, std::string_view name) {
  const CLI::Option* option = subcommand.get_option_no_throw("--" + std::string(name));
  return option == nullptr || option->count() == 0 ? "" : option->results().front();
}

// The command line wins, also where it says it in the other way.
bool has_command_line_said(const CLI::App& subcommand, const CLI::Option& option,
                           const std::string& name) {
  return option.count() > 0 ||
         std::any_of(kAlternatives.begin(), kAlternatives.end(), [&](const Alternative& one) {
           return one.option == name && !result_of(subcommand, one.other).empty();
         });
}

std::string join(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

struct Setting {
  std::string value, source;
};

Setting dsn_setting(const std::string& given, const std::string& file) {
  const auto found = find_dsn(given, file);
  if (found) return {found->dsn.masked(), found->source};
  const bool is_missing =
      found.error().code == ErrorCode::NotFound && given.empty() && file.empty();
  return is_missing ? Setting{kNone, kDefault} : Setting{"*** (" + found.error().message + ")", ""};
}

// Options that a variable of the environment stands in for; the first that is set wins.
struct Variable {
  std::string_view option;
  const char* name;
};
constexpr std::array<Variable, 5> kVariables = {{{"release", "SENTRY_RELEASE"},
                                                 {"environment", "SENTRY_ENVIRONMENT"},
                                                 {"verbose", "SENTRY_DEBUG"},
                                                 {"ca-file", "CURL_CA_BUNDLE"},
                                                 {"ca-file", "SSL_CERT_FILE"}}};

// Of an option that was not given, so that its target still has the default.
Setting default_setting(CLI::Option& option, const std::string& name) {
  const bool is_flag = option.get_expected_max() == 0;
  for (const Variable& variable : kVariables) {
    const std::string value = environment_variable(variable.name);
    if (variable.option != name || value.empty()) continue;
    return {is_flag ? fmt::format("{}", is_yes(value)) : value, variable.name};
  }
  if (is_flag) return {"false", kDefault};
  option.capture_default_str();
  const std::string value = option.get_default_str();
  const bool is_none = value.empty() || value == "[]";  // an empty list, as CLI11 has it
  return {is_none ? kNone : value, kDefault};
}

// Empty if the setting is not for `subcommand`, or something else wins.
Result<std::string> argument_of(const ConfigSetting& setting, const Settings& settings,
                                const CLI::App& subcommand) {
  const auto wrong = [](std::string message) {
    return fail(ErrorCode::InvalidArgument, std::move(message));
  };
  const std::string& name = setting.name;
  if (!is_known_section(setting.section, subcommand)) {
    return wrong(
        fmt::format("there is no section [{}]: record and upload have one", setting.section));
  }
  if (!setting.section.empty() && setting.section != subcommand.get_name()) return "";
  const CLI::Option* option = subcommand.get_option_no_throw("--" + name);
  if (option == nullptr && is_option_of_another(setting, subcommand)) return "";
  if (option != nullptr && is_for_command_line_only(name)) {
    return wrong(fmt::format("'{}' may only be given on the command line", name));
  }
  if (option == nullptr) {
    return wrong(fmt::format("there is no option '{}' for {}", name, subcommand.get_name()));
  }
  if (setting.values.size() != 1 && option->get_expected_max() <= 1) {
    return wrong(fmt::format("'{}' has one value, not a list", name));
  }
  const bool is_overridden =
      setting.section.empty() && is_in_section(settings, subcommand.get_name(), name);
  if (is_overridden || has_command_line_said(subcommand, *option, name)) return "";
  return "--" + name + "=" + join(setting.values);
}

}  // namespace

void add_config_options(CLI::App& subcommand, ConfigOptions& options) {
  subcommand
      .add_option("--config", options.path,
                  "Options from a file: lines 'name = value', as in TOML or INI")
      ->check(not_empty())
      ->type_name("FILE");
  subcommand.add_flag("--print-config", options.is_to_be_printed,
                      "Show the options in force and where they come from, then end");
}

Result<std::vector<std::string>> arguments_of_config(const std::string& path,
                                                     const CLI::App& subcommand) {
  const auto settings = read_settings(path);
  if (!settings) return tl::unexpected(settings.error());
  std::vector<std::string> arguments;
  for (const ConfigSetting& setting : *settings) {
    const auto argument = argument_of(setting, *settings, subcommand);
    if (!argument) {
      return fail(argument.error().code,
                  fmt::format("--config {}:{}: {}", path, setting.line, argument.error().message));
    }
    if (!argument->empty()) arguments.push_back(*argument);
  }
  return arguments;
}

std::string printed_config(CLI::App& subcommand, const std::string& config_path,
                           const std::vector<std::string>& of_config) {
  std::string text;
  for (CLI::Option* option : subcommand.get_options()) {
    if (option->get_lnames().empty() || option->get_group().empty()) continue;
    const std::string& name = option->get_lnames().front();
    if (is_for_command_line_only(name)) continue;
    Setting setting;
    if (option->count() == 0) {
      setting = default_setting(*option, name);
    } else {
      const bool is_of_config = std::any_of(
          of_config.begin(), of_config.end(),
          [&](const std::string& argument) { return argument.starts_with("--" + name + "="); });
      setting = {join(option->results()), is_of_config ? config_path : "command line"};
    }
    if (name == "dsn") {
      const Setting dsn =
          dsn_setting(result_of(subcommand, "dsn"), result_of(subcommand, "dsn-file"));
      setting = {dsn.value, dsn.source == "--dsn" ? setting.source : dsn.source};
    }
    // A DSN given to the wrong option is a secret, too.
    text +=
        without_userinfo(fmt::format("{:<18} {:<30} # {}\n", name, printable_utf8(setting.value),
                                     printable_utf8(setting.source)));
  }
  return text;
}

std::string first_on_command_line(const std::vector<const CLI::Option*>& options,
                                  const std::vector<std::string>& of_config) {
  for (const CLI::Option* option : options) {
    const std::string name = option->get_name();
    const bool is_of_config = std::ranges::any_of(
        of_config, [&](const std::string& argument) { return argument.starts_with(name + "="); });
    if (option->count() > 0 && !is_of_config) return name;
  }
  return "";
}

}  // namespace sentry_prof::cli
