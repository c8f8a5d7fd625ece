// sentry-prof: arguments in, calls out, exit code.

#include "cli/chunk_files.h"
#include "cli/config_file.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/record_command.h"
#include "cli/record_options.h"
#include "cli/upload_command.h"
#include "cli/upload_options.h"
#include "cli/validate_command.h"
#include "cli/validate_options.h"
#include "os/standard_streams.h"

#include <algorithm>
#include <cstring>
#include <exception>
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
  constexpr std::string_view kOption = "--dsn";
  bool is_dsn = false;
  for (int i = 1; i < argc; ++i) {
    char* argument = argv[i];
    if (std::string_view(argument) == "--") return;  // a command's own
    if (is_dsn) {
      std::memset(argument, '*', std::strlen(argument));
    } else if (std::string_view(argument).starts_with("--dsn=")) {
      std::memset(argument + kOption.size() + 1, '*', std::strlen(argument) - kOption.size() - 1);
    }
    is_dsn = argument == kOption;
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
  complain("unexpected '" + argument + "'. The command to record goes behind '--'");
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

// Nothing if the program is to go on.
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes its arguments from the back
  try {
    app.parse(std::move(arguments));
    return {};
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (app.get_subcommands().empty()) {
      return usage_error("say what to do: 'record', 'validate' or 'upload'", "");
    }
    return usage_error(error.what(), app.get_subcommands().front()->get_name() + " ");
  }
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  hide_dsn(argc, argv);
  RecordOptions record_options;
  record_options.command = cut_command(arguments);
  ValidateCommandOptions validate_options;

  CLI::App app("Profiles a Linux process from outside and writes profiles that Sentry accepts.",
               "sentry-prof");
  app.set_version_flag("--version", "sentry-prof " SENTRY_PROF_VERSION);
  app.require_subcommand(1);
  app.footer("sentry-prof COMMAND --help tells more; so does man sentry-prof.");
  CLI::App& record = add_subcommand(
      app, "record", "Record a running process or a command",
      "sentry-prof record [OPTIONS] (-p PID[,PID]... | -- CMD ARG...)", kRecordExamples);
  add_record_options(record, record_options);
  CLI::App& validate =
      add_subcommand(app, "validate", "Tell every reason why Sentry would refuse a profile",
                     "sentry-prof validate [OPTIONS] FILE...\n"
                     "       sentry-prof validate --fix -o OUT FILE\n"
                     "       sentry-prof validate --explain RULE",
                     kValidateExamples);
  add_validate_options(validate, validate_options);

  UploadCommandOptions upload_options;
  CLI::App& upload =
      add_subcommand(app, "upload", "Send profiles to Sentry",
                     "sentry-prof upload [OPTIONS] FILE...\n       sentry-prof upload --spool DIR",
                     kUploadExamples);
  add_upload_options(upload, upload_options);

  ConfigOptions config;
  add_config_options(record, config);
  add_config_options(upload, config);

  if (const auto ended = parse(app, arguments)) return *ended;
  std::vector<std::string> of_config;
  if (!config.path.empty()) {
    const auto read = arguments_of_config(config.path, *app.get_subcommands().front());
    if (!read) {
      complain(read.error().message);
      return kWrongUsage;
    }
    of_config = *read;
    // Behind the subcommand's name. A second parsing of the same and more.
    std::vector<std::string> all = arguments;
    all.insert(all.begin() + 1, of_config.begin(), of_config.end());
    if (const auto ended = parse(app, all)) return *ended;
  }
  CLI::App& chosen = *app.get_subcommands().front();
  for (const std::string& unknown : chosen.remaining()) {
    if (unknown != "--") return complain_of_unknown(chosen, unknown);
  }
  if (config.is_to_be_printed) {
    return write_to_stdout(printed_config(chosen, config.path, of_config)) ? kDone : kInputOutput;
  }
  if (&chosen == &upload) return upload_command(std::move(upload_options));
  return &chosen == &validate ? validate_command(validate_options)
                              : record_command(std::move(record_options));
}

}  // namespace

}  // namespace sentry_prof::cli

int main(int argc, char** argv) {
  using namespace sentry_prof::cli;
  sentry_prof::os::ensure_standard_fds();
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
