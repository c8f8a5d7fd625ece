// sentry-prof: arguments in, calls out, exit code.

#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/record_command.h"
#include "cli/record_options.h"
#include "os/standard_streams.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
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

// CLI11 before 2.3 has no other way to say what comes behind the options.
class UsageFormatter : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App*, std::string) const override { return usage_; }

 private:
  std::string usage_;
};

// Everything behind the first "--" is the command, never an option of ours.
std::vector<std::string> cut_command(std::vector<std::string>& arguments) {
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return {};
  std::vector<std::string> command(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return command;
}

int usage_error(const std::string& message, const char* where_to_look) {
  complain(message + ". Try: sentry-prof " + where_to_look + "--help");
  return kWrongUsage;
}

int complain_of_unknown(const std::string& argument) {
  if (argument.starts_with('-'))
    return usage_error("there is no option '" + argument + "'", "record ");
  complain("unexpected '" + argument + "'. The command to record goes behind '--'");
  return kWrongUsage;
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  RecordOptions record_options;
  record_options.command = cut_command(arguments);

  CLI::App app("Profiles a Linux process from outside and writes profiles that Sentry accepts.",
               "sentry-prof");
  app.set_version_flag("--version", "sentry-prof " SENTRY_PROF_VERSION);
  app.require_subcommand(1);
  app.footer("sentry-prof record --help tells more; so does man sentry-prof.");
  CLI::App* record = app.add_subcommand("record", "Record a running process or a command");
  record->formatter(std::make_shared<UsageFormatter>(
      "Usage: sentry-prof record [OPTIONS] (-p PID[,PID]... | -- CMD ARG...)\n"));
  record->footer(kRecordExamples);
  add_record_options(*record, record_options);
  record->allow_extras();  // told in our own words

  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes its arguments from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (app.get_subcommands().empty()) return usage_error("say what to do, such as 'record'", "");
    return usage_error(error.what(), "record ");
  }
  if (const auto unknown = record->remaining(); !unknown.empty()) {
    return complain_of_unknown(unknown.front());
  }
  return record_command(std::move(record_options));
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
