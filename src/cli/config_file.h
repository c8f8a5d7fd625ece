// Options out of a file, and where each value comes from.
#pragma once

#include "sentry_prof/result.h"

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sentry_prof::cli {

struct ConfigOptions {
  std::string path;  // of --config; empty: none
  bool is_to_be_printed = false;
};

void add_config_options(CLI::App& subcommand, ConfigOptions& options);

// Arguments "--name=value" for what the file says and the command line, which `subcommand` has
// parsed, does not (config_text.h): the section of the subcommand's name, then what stands before
// any. Messages name the file, the line and the option, never a value.
Result<std::vector<std::string>> arguments_of_config(const std::string& path,
                                                     const CLI::App& subcommand);

// The name of the first of `options` that the command line gives, and not a file of --config, which
// may serve several kinds of runs; empty if there is none. `of_config`: arguments_of_config().
std::string first_on_command_line(const std::vector<const CLI::Option*>& options,
                                  const std::vector<std::string>& of_config);

// A line for each option of `subcommand`: name, value, source. The DSN is masked.
// `of_config`: what arguments_of_config() gave and was parsed, too.
std::string printed_config(CLI::App& subcommand, const std::string& config_path,
                           const std::vector<std::string>& of_config);

}  // namespace sentry_prof::cli
