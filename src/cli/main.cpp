// sentry-prof: arguments in, calls out, exit code.

#include "cli/chunk_files.h"
#include "cli/config_file.h"
#include "cli/convert_command.h"
#include "cli/convert_options.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/record_command.h"
#include "cli/record_options.h"
#include "cli/upload_command.h"
#include "cli/upload_options.h"
#include "cli/validate_command.h"
#include "cli/validate_options.h"
#include "os/heap.h"
#include "os/signals.h"
#include "os/standard_streams.h"
#include "sentry_prof/result.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/auxv.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

constexpr const char* kRecordExamples =
    "Examples:\n"
    "  sentry-prof record -- ./server --port 80     launch and profile until it ends\n"
    "  sentry-prof record -p 4242 -d 30             profile a running process for 30 s\n"
    "  sentry-prof record -p 4242 -o profiles/      one file a minute into a directory\n"
    "  sentry-prof record --format v1 -F 997 -- make -j2\n";

constexpr const char* kValidateExamples =
    "Examples:\n"
    "  sentry-prof validate profile.json                 all that is wrong with it, and how to "
    "mend it\n"
    "  sentry-prof validate --format json *.json | jq    one object a file, for scripts\n"
    "  zcat chunk.gz | sentry-prof validate -            from standard input\n"
    "  sentry-prof validate --explain profiling_not_enough_samples\n"
    "  sentry-prof validate --fix -o fixed.json profile.json\n"
    "\n"
    "Exit status: 0 all files are valid, 1 one is not, 7 one could not be read (7 wins).\n"
    "With --fix it is OUT that counts, and 1 is also a file that cannot be fixed at all.\n";

constexpr const char* kConvertExamples =
    "Examples:\n"
    "  perf record -F 997 --call-graph dwarf,65528 -k CLOCK_MONOTONIC --switch-events ./server\n"
    "  sentry-prof convert perf.data -o profile.json\n"
    "  sentry-prof convert --to sentry-v1 perf.data -o profiles/\n"
    "\n"
    "Exit status: 0 done, 1 there was nothing in it to convert, 2 wrong usage, 7 input/output,\n"
    "125 sentry-prof itself failed (out of memory).\n";

constexpr const char* kUploadExamples =
    "Examples:\n"
    "  sentry-prof upload profile.json                       to the DSN of SENTRY_DSN\n"
    "  sentry-prof upload --spool /var/spool/prof *.json     keep what cannot be sent now\n"
    "  sentry-prof upload --spool /var/spool/prof            send what was kept\n"
    "  sentry-prof upload --dry-run -o envelope profile.json\n"
    "\n"
    "Exit status: 0 all were accepted, 1 invalid or refused, 2 wrong usage, 3 authentication,\n"
    "4 too large, 5 rate limited, 6 network or server, 7 input/output. The highest wins.\n";

// CLI11 before 2.3 has no other way to say what comes behind the options.
class UsageFormatter : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App*, std::string) const override { return usage_; }

 private:
  std::string usage_;
};

// `ps` shows a program's arguments to every user: the DSN is taken out of them.
void hide_dsn(int argc, char** argv) {
  constexpr std::string_view kOption = "--dsn=";
  bool is_dsn = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    if (argument == "--") return;  // a command's own
    const bool is_option = argument.starts_with(kOption);
    // One that was given to a wrong option is no less secret.
    const bool has_key =
        argument.find("://") < argument.find('@') && argument.find('@') != argument.npos;
    const size_t begin = is_option ? kOption.size() : 0;
    if (is_dsn || is_option || has_key) {
      std::memset(argv[i] + begin, '*', argument.size() - begin);
    }
    is_dsn = argument == "--dsn";
  }
}

// Of `record` everything behind the first "--" is the command, never an option of ours.
std::vector<std::string> cut_command(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "record") return {};
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return {};
  std::vector<std::string> command(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return command;
}

int usage_error(const std::string& message, const std::string& where_to_look) {
  complain(message + ". Try: sentry-prof " + where_to_look + "--help");
  return kWrongUsage;
}

int complain_of_unknown(const CLI::App& subcommand, const std::string& argument) {
  if (argument.starts_with('-'))
    return usage_error("there is no option '" + argument + "'", subcommand.get_name() + " ");
  const bool is_record = subcommand.get_name() == "record";
  complain("unexpected '" + argument +
           (is_record ? "'. The command to record goes behind '--'" : "'. Give one file"));
  return kWrongUsage;
}

CLI::App& add_subcommand(CLI::App& app, const char* name, const char* description,
                         const char* usage, const char* examples) {
  CLI::App* subcommand = app.add_subcommand(name, description);
  subcommand->formatter(std::make_shared<UsageFormatter>(std::string("Usage: ") + usage + "\n"));
  subcommand->footer(examples);
  subcommand->allow_extras();  // told in our own words
  return *subcommand;
}

// One, or none.
std::vector<const CLI::App*> commands_named(const CLI::App& app, const std::string& name) {
  return app.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
}

// `--release=$UNSET`: CLI11 (2.1.2) takes the next argument for the value where there is none
// behind the "=".
std::vector<std::string> with_empty_values_apart(const CLI::App& app,
                                                 std::vector<std::string> arguments) {
  const auto named = commands_named(app, arguments.empty() ? "" : arguments.front());
  std::vector<std::string> result;
  for (std::string& argument : arguments) {
    const bool has_no_value =
        argument.starts_with("--") && argument.find('=') + 1 == argument.size();
    const CLI::Option* option =
        has_no_value && !named.empty()
            ? named.front()->get_option_no_throw(argument.substr(0, argument.size() - 1))
            : nullptr;
    const bool takes_value = option != nullptr && option->get_expected_max() > 0;
    if (takes_value) argument.pop_back();
    result.push_back(std::move(argument));
    if (takes_value) result.emplace_back();
  }
  return result;
}

// CLI11's "--pid: 1 required PID missing" and "Could not convert: --upload = maybe"; what our
// validators say is in our words.
std::string in_our_words(const CLI::ParseError& error) {
  const std::string text = error.what();
  constexpr std::string_view kNotConverted = "Could not convert: ";
  if (text.starts_with(kNotConverted)) {
    return text.substr(kNotConverted.size()) + " is neither true nor false";
  }
  for (const auto& [theirs, ours] : {std::pair(": 1 required ", ": its value is missing"),
                                     {": At Most 1 required ", ": is given more than once"}}) {
    const size_t name_end = text.find(theirs);
    if (name_end != text.npos) return text.substr(0, name_end) + ours;
  }
  return text;
}

// Nothing if the program is to go on. `where`: what messages on options begin with.
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments,
                         const std::string& where) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  arguments = with_empty_values_apart(app, std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes its arguments from the back
  try {
    app.parse(std::move(arguments));
    return {};
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      if (std::cout.flush()) return kDone;
      complain("standard output cannot be written to");
      return kInputOutput;
    }
    const bool is_option = first.starts_with('-');
    if (is_option || app.get_subcommands().empty()) {
      const std::string what = first.empty() ? std::string()
                               : is_option ? "there is no option '" + first + "' before a command: "
                                           : "there is no command '" + first + "': ";
      return usage_error(what + "say what to do: 'record', 'validate', 'upload' or 'convert'", "");
    }
    return usage_error(where + in_our_words(error),
                       app.get_subcommands().front()->get_name() + " ");
  }
}

// What the command line is parsed into.
struct Options {
  RecordOptions record;
  ValidateCommandOptions validate;
  UploadCommandOptions upload;
  ConvertOptions convert;
  ConfigOptions config;
};

// `options` must outlive `app`, which writes to it when it parses.
void add_subcommands(CLI::App& app, Options& options) {
  CLI::App& record = add_subcommand(
      app, "record", "Record a running process or a command",
      "sentry-prof record [OPTIONS] (-p PID[,PID]... | -- CMD ARG...)", kRecordExamples);
  add_record_options(record, options.record);
  CLI::App& validate =
      add_subcommand(app, "validate", "Tell every reason why Sentry would refuse a profile",
                     "sentry-prof validate [OPTIONS] FILE...\n"
                     "       sentry-prof validate --fix -o OUT FILE\n"
                     "       sentry-prof validate --explain RULE",
                     kValidateExamples);
  add_validate_options(validate, options.validate);
  CLI::App& upload =
      add_subcommand(app, "upload", "Send profiles to Sentry",
                     "sentry-prof upload [OPTIONS] FILE...\n       sentry-prof upload --spool DIR",
                     kUploadExamples);
  add_upload_options(upload, options.upload);
  CLI::App& convert = add_subcommand(app, "convert", "Make profiles of a perf.data file",
                                     "sentry-prof convert [OPTIONS] IN -o OUT", kConvertExamples);
  add_convert_options(convert, options.convert);
  add_config_options(record, options.config);
  add_config_options(upload, options.config);
}

// What the config file says, parsed behind the subcommand's name: a second parsing of the same
// `arguments` and more. Otherwise the exit code to end with.
tl::expected<std::vector<std::string>, int> parse_config(CLI::App& app,
                                                         const std::string& config_path,
                                                         std::vector<std::string> arguments) {
  if (config_path.empty()) return {};
  const auto of_config = arguments_of_config(config_path, *app.get_subcommands().front());
  if (!of_config) {
    complain(of_config.error().message);
    return tl::unexpected<int>(kWrongUsage);
  }
  arguments.insert(arguments.begin() + 1, of_config->begin(), of_config->end());
  // The command line alone was right.
  const auto ended = parse(app, std::move(arguments), "--config " + config_path + ": ");
  if (ended) return tl::unexpected(*ended);
  return *of_config;
}

bool gives_dsn(const std::vector<std::string>& of_config) {
  return std::ranges::any_of(of_config, [](const std::string& argument) {
    return argument.starts_with("--dsn=") || argument.starts_with("--dsn-file=");
  });
}

// Does what was asked for, with all parsed: an exit code.
int dispatch(CLI::App& chosen, Options& options, const std::vector<std::string>& of_config) {
  for (const std::string& unknown : chosen.remaining()) {
    if (unknown != "--") return complain_of_unknown(chosen, unknown);
  }
  for (const auto& ok : {check_sending_options(options.record, of_config),
                         check_dry_run_options(options.upload, of_config)}) {
    if (!ok) return usage_error(ok.error().message, chosen.get_name() + " ");
  }
  if (options.config.is_to_be_printed) {
    const auto ok = write_to_stdout(printed_config(chosen, options.config.path, of_config));
    if (!ok) complain(ok.error().message);
    return ok ? kDone : kInputOutput;
  }
  if (chosen.get_name() == "convert") return convert_command(std::move(options.convert));
  if (chosen.get_name() == "upload") return upload_command(std::move(options.upload));
  return chosen.get_name() == "validate" ? validate_command(options.validate)
                                         : record_command(std::move(options.record));
}

// `help` and `help COMMAND`, as git and others have it. Of what is no command the parser complains.
void ask_for_help(const CLI::App& app, std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return;
  arguments.erase(arguments.begin());
  if (arguments.empty() || arguments.front() == "help") {
    arguments = {"--help"};
  } else if (!commands_named(app, arguments.front()).empty()) {
    arguments = {arguments.front(), "--help"};
  }
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  hide_dsn(argc, argv);
  Options options;
  options.record.command = cut_command(arguments);
  CLI::App app("Profiles a Linux process from outside and writes profiles that Sentry accepts.",
               "sentry-prof");
  app.set_version_flag("-V,--version", "sentry-prof " SENTRY_PROF_VERSION);
  app.require_subcommand(1);
  app.footer("sentry-prof COMMAND --help tells more; so does man sentry-prof.");
  add_subcommands(app, options);
  ask_for_help(app, arguments);
  if (const auto ended = parse(app, arguments, "")) return *ended;
  const auto of_config = parse_config(app, options.config.path, std::move(arguments));
  if (!of_config) return of_config.error();
  if (gives_dsn(*of_config)) {
    const std::string from = "--config " + options.config.path + ": ";
    options.record.sending.dsn_from = options.upload.sending.dsn_from = from;
  }
  return dispatch(*app.get_subcommands().front(), options, *of_config);
}

}  // namespace

}  // namespace sentry_prof::cli

int main(int argc, char** argv) {
  using namespace sentry_prof::cli;
  sentry_prof::os::ensure_standard_fds();
  sentry_prof::os::give_back_large_blocks();
  sentry_prof::os::make_size_limit_an_error();
  if (::getauxval(AT_SECURE) != 0 && ::getuid() != ::geteuid()) {
    complain("must not be installed setuid; use sudo, or give it CAP_PERFMON");
    return kOwnFailure;
  }
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  } catch (const std::exception& error) {
    complain(std::string("unexpected: ") + error.what());
  }
  return kOwnFailure;
}
