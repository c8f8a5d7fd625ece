#include "cli/config_file.h"

#include "cli/dsn_source.h"
#include "cli/environment.h"
#include "cli/message.h"
#include "os/file.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

constexpr const char* kDefault = "default";
constexpr const char* kNone = "(none)";
constexpr size_t kMaxFile_bytes = 1024 * 1024;

// Options that make no sense in a file.
bool is_for_command_line_only(const std::string& name) {
  return name == "config" || name == "print-config" || name == "help";
}

bool is_section_mark(const CLI::ConfigItem& item) { return item.name == "++" || item.name == "--"; }

bool is_of(const CLI::ConfigItem& item, const CLI::App& subcommand) {
  return item.parents.empty() ||
         (item.parents.size() == 1 && item.parents.front() == subcommand.get_name());
}

// Sections are named after subcommands.
bool is_known_section(const std::vector<std::string>& parents, const CLI::App& subcommand) {
  const auto all = subcommand.get_parent()->get_subcommands({});
  return parents.empty() ||
         (parents.size() == 1 && std::any_of(all.begin(), all.end(), [&](const CLI::App* one) {
            return one->get_name() == parents.front();
          }));
}

// What stands before any section may be meant for another subcommand.
bool is_option_of_another(const CLI::ConfigItem& item, const CLI::App& subcommand) {
  const auto all = subcommand.get_parent()->get_subcommands({});
  return item.parents.empty() && std::any_of(all.begin(), all.end(), [&](const CLI::App* one) {
           return one->get_option_no_throw("--" + item.name) != nullptr;
         });
}

Result<std::vector<CLI::ConfigItem>> read_items(const std::string& path) {
  const auto text = os::read_small_file(path, kMaxFile_bytes);
  if (!text) return fail(text.error().code, "--config: " + text.error().message);
  std::istringstream stream(*text);
  try {
    return CLI::ConfigTOML().from_config(stream);
  } catch (const CLI::Error&) {  // its text may quote a value
    return fail(ErrorCode::Malformed, "--config " + path + ": is neither TOML nor INI");
  }
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

std::string result_of(const CLI::App& subcommand, const char* name) {
  const CLI::Option* option = subcommand.get_option_no_throw(name);
  return option == nullptr || option->count() == 0 ? "" : option->results().front();
}

}  // namespace

void add_config_options(CLI::App& subcommand, ConfigOptions& options) {
  subcommand.add_option("--config", options.path, "Options from a file (TOML, INI)")
      ->type_name("FILE");
  subcommand.add_flag("--print-config", options.is_to_be_printed,
                      "Show the options in force and where they come from, then end");
}

Result<std::vector<std::string>> arguments_of_config(const std::string& path,
                                                     const CLI::App& subcommand) {
  const auto items = read_items(path);
  if (!items) return tl::unexpected(items.error());
  std::vector<std::string> arguments;
  for (const CLI::ConfigItem& item : *items) {
    if (!is_known_section(item.parents, subcommand)) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("--config {}: there is no section [{}]: record and upload have one",
                              path, fmt::join(item.parents, ".")));
    }
    if (!is_of(item, subcommand) || is_section_mark(item)) continue;
    const CLI::Option* option = subcommand.get_option_no_throw("--" + item.name);
    if (option == nullptr && is_option_of_another(item, subcommand)) continue;
    if (option == nullptr || is_for_command_line_only(item.name)) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("--config {}: there is no option '{}' for {}", path, item.name,
                              subcommand.get_name()));
    }
    // The command line wins, also where it has the DSN in the other way.
    const bool is_dsn = item.name == "dsn" || item.name == "dsn-file";
    const bool has_dsn =
        !result_of(subcommand, "--dsn").empty() || !result_of(subcommand, "--dsn-file").empty();
    if (is_dsn && has_dsn) continue;
    if (option->count() == 0) arguments.push_back("--" + item.name + "=" + join(item.inputs));
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
          dsn_setting(result_of(subcommand, "--dsn"), result_of(subcommand, "--dsn-file"));
      setting = {dsn.value, dsn.source == "--dsn" ? setting.source : dsn.source};
    }
    // A DSN given to the wrong option is a secret, too.
    text +=
        without_userinfo(fmt::format("{:<18} {:<30} # {}\n", name, setting.value, setting.source));
  }
  return text;
}

}  // namespace sentry_prof::cli
