#include "cli/fix_file.h"

#include "base/utf8.h"
#include "cli/chunk_files.h"
#include "cli/exit_code.h"
#include "cli/judged_file.h"
#include "cli/message.h"
#include "cli/problem_text.h"
#include "cli/validation_json.h"
#include "sentry_prof/repair.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

std::string shown_name(const std::string& name) {
  return printable_utf8(name == "-" ? "<stdin>" : name);
}

class FileFix {
 public:
  FileFix(const std::string& name, const ValidateCommandOptions& options, bool is_coloured)
      : name_(name), options_(options), is_coloured_(is_coloured && options.output != "-") {}

  int run() {
    auto input = read_profile_input(name_, options_.input_limit());
    if (!input || input->too_large) {
      return refuse(judge_input(name_, input, options_, kNoSizeLimitHint), {});
    }
    RepairResult result = repair(std::move(input->text));
    if (result.outcome != RepairOutcome::Whole) {
      const JudgedFile file{name_, validate(result.text, options_.judging()), {}, {}};
      return refuse(file, result.outcome == RepairOutcome::Envelope
                              ? "--fix takes a profile or a chunk, not the envelope around it"
                              : "it cannot be read to its end, and what is missing is unknown");
    }
    return write(result);
  }

 private:
  bool says_it_on_stderr() const { return options_.output == "-"; }
  int say(const JudgedFile& file);
  std::string fixes_text(const std::vector<RepairChange>& fixes) const;
  int refuse(const JudgedFile& file, std::string_view why);
  int write(const RepairResult& result);

  const std::string& name_;
  const ValidateCommandOptions& options_;
  bool is_coloured_;
};

int FileFix::say(const JudgedFile& file) {
  std::string text;
  if (options_.format == ReportFormat::Json) {
    text = validation_json(file, options_.judging());
  } else if (!file.error) {
    if (file.fixes) text = fixes_text(*file.fixes);
    text += problem_text(file, options_.judging(), is_coloured_);
  }
  if (says_it_on_stderr()) {
    print(text);
    return kDone;
  }
  const auto written = write_to_stdout(text);
  if (!written) complain(written.error().message);
  return written ? kDone : kInputOutput;
}

std::string FileFix::fixes_text(const std::vector<RepairChange>& fixes) const {
  const std::string name = shown_name(name_);
  if (fixes.empty()) return fmt::format("{}: nothing to fix, the same bytes were written\n", name);
  std::string text;
  for (const RepairChange& fix : fixes) {
    text += fmt::format("{}: fixed: {}{}{}\n", name, fix.what,
                        fix.count > 1 ? fmt::format(", {} times", fix.count) : "",
                        fix.rule.empty() ? "" : fmt::format(" [{}]", fix.rule));
  }
  return text;
}

int FileFix::refuse(const JudgedFile& file, std::string_view why) {
  const int said = say(file);
  if (file.error && options_.format == ReportFormat::Text) complain(file.error->message);
  complain(fmt::format("{} was not fixed and nothing written{}{}", shown_name(name_),
                       why.empty() ? "" : ": ", why));
  return std::max({said, exit_code_of(file), static_cast<int>(kAnswerIsNo)});
}

int FileFix::write(const RepairResult& result) {
  const JudgedFile file{says_it_on_stderr() ? "<stdout>" : options_.output,
                        validate(result.text, options_.judging()),
                        {},
                        result.changes};
  const auto written = write_output(options_.output, result.text);
  if (!written) {
    complain(written.error().message);
    return kInputOutput;
  }
  return std::max(say(file), exit_code_of(file));
}

}  // namespace

int fix_file(const std::string& name, const ValidateCommandOptions& options, bool is_coloured) {
  try {
    return FileFix(name, options, is_coloured).run();
  } catch (const std::bad_alloc&) {  // of a huge file with --no-size-limit
    complain(shown_name(name) + ": out of memory");
    return kInputOutput;
  }
}

}  // namespace sentry_prof::cli
