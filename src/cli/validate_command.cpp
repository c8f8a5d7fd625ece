#include "cli/validate_command.h"

#include "cli/chunk_files.h"
#include "cli/exit_code.h"
#include "cli/fix_file.h"
#include "cli/judged_file.h"
#include "cli/message.h"
#include "cli/problem_text.h"
#include "cli/rule_text.h"
#include "cli/validation_json.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

// https://no-color.org: set and not empty.
bool wants_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') &&
         term != nullptr && std::string_view(term) != "dumb";
}

int print_or_complain(std::string_view text) {
  const auto written = write_to_stdout(text);
  if (written) return kDone;
  complain(written.error().message);
  return kInputOutput;
}

struct Totals {
  size_t files = 0;
  size_t invalid = 0;
  size_t unread = 0;

  void count(int exit_code) {
    ++files;
    invalid += exit_code == kAnswerIsNo ? 1 : 0;
    unread += exit_code == kInputOutput ? 1 : 0;
  }
  std::string text() const {
    std::string text =
        fmt::format("{} files: {} valid, {} invalid", files, files - invalid - unread, invalid);
    if (unread > 0) text += fmt::format(", {} could not be read", unread);
    return text + "\n";
  }
};

int show(const JudgedFile& file, const ValidateCommandOptions& options, bool is_coloured) {
  if (options.format == ReportFormat::Json) {
    return print_or_complain(validation_json(file, options.judging()));
  }
  if (!file.error) return print_or_complain(problem_text(file, options.judging(), is_coloured));
  complain(file.error->message);
  return kDone;
}

int judge_all(const ValidateCommandOptions& options) {
  const bool is_json = options.format == ReportFormat::Json;
  const bool is_coloured = !is_json && wants_colour();
  int worst = kDone;
  Totals totals;
  for (const std::string& name : options.files) {
    const JudgedFile file = judge_file(name, options);
    const int code = exit_code_of(file);
    totals.count(code);
    worst = std::max(worst, code);
    const int printed = show(file, options, is_coloured);
    if (printed != kDone) return printed;
  }
  if (!is_json && totals.files > 1) worst = std::max(worst, print_or_complain(totals.text()));
  return worst;
}

int fix(const ValidateCommandOptions& options) {
  if (!options.fix || options.output.empty() || options.files.size() != 1) {
    complain(!options.fix ? "-o is where --fix writes, and there is no --fix"
                          : "--fix takes one FILE, and -o OUT for what it makes of it");
    return kWrongUsage;
  }
  return fix_file(options.files.front(), options, wants_colour());
}

}  // namespace

int validate_command(const ValidateCommandOptions& options) {
  if (!options.explain.empty()) {
    const auto text = explain(options.explain);
    if (text) return print_or_complain(*text);
    complain(text.error().message);
    return kWrongUsage;
  }
  if (options.fix || !options.output.empty()) return fix(options);
  if (options.files.empty()) {
    complain(
        "nothing to validate: give one FILE or more, '-' for standard input. Try: sentry-prof "
        "validate --help");
    return kWrongUsage;
  }
  if (std::count(options.files.begin(), options.files.end(), "-") > 1) {
    complain("'-' is given more than once, but standard input can be read only once");
    return kWrongUsage;
  }
  return judge_all(options);
}

}  // namespace sentry_prof::cli
