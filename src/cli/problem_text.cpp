#include "cli/problem_text.h"

#include "base/counted.h"
#include "base/utf8.h"
#include "cli/deciding_problem.h"
#include "cli/report_words.h"
#include "cli/wrapped_text.h"
#include "sentry/rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

constexpr size_t kMaxMessage_bytes = 1000;
constexpr size_t kMaxPointer_bytes = 300;

// Of a rule whose problems are notes. Every image of a Linux profile has one ("elf"); --format json
// has them all.
constexpr uint64_t kListedNotes = 3;

// ECMA-48 "select graphic rendition", as compilers use it.
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kMagenta = "\x1b[1;35m";
constexpr std::string_view kCyan = "\x1b[1;36m";
constexpr std::string_view kGreen = "\x1b[1;32m";
constexpr std::string_view kPlain = "\x1b[0m";

// Of `text`, which may be any bytes and of any length.
std::string shown(std::string_view text, size_t max_bytes) {
  return shortened_utf8(printable_utf8(text.substr(0, max_bytes + 1)), max_bytes);
}

std::string_view colour_of(Severity severity) {
  if (severity == Severity::Error) return kRed;
  return severity == Severity::Warning ? kMagenta : kCyan;
}

// Behind a word.
std::string_view kind_noun(ValidatedKind kind) {
  switch (kind) {
    case ValidatedKind::V1:
      return " V1 profile";
    case ValidatedKind::V2:
      return " V2 chunk";
    case ValidatedKind::Envelope:
      return " envelope";
    case ValidatedKind::Unknown:
      break;
  }
  return "";
}

class ReportText {
 public:
  ReportText(const JudgedFile& file, const ValidateOptions& options, bool is_coloured)
      : file_(file),
        options_(options),
        is_coloured_(is_coloured),
        name_(printable_utf8(file.name == "-" ? "<stdin>" : file.name)) {}

  std::string write() {
    write_problems();
    write_verdict();
    if (file_.report.valid) write_summary();
    return out_;
  }

 private:
  void line(std::string_view text) { (out_ += text) += '\n'; }
  std::string coloured(std::string_view colour, std::string_view text) const {
    return is_coloured_ ? fmt::format("{}{}{}", colour, text, kPlain) : std::string(text);
  }
  void write_problems();
  void write_problem(const Problem& problem);
  void explain(const sentry::Rule& rule, const Problem& problem);
  void write_verdict();
  void write_reason();
  bool names_elf() const;
  void write_summary();
  std::string counts() const;

  const JudgedFile& file_;
  const ValidateOptions& options_;
  bool is_coloured_;
  std::string name_;
  std::string out_;
  std::set<std::string_view> explained_;  // rules, whose first problem has told what they are about
};

void ReportText::write_problems() {
  std::map<std::string_view, uint64_t> listed, left_out;  // by rule
  for (const Problem& problem : file_.report.problems) {
    if (problem.severity == Severity::Note && listed[problem.rule]++ >= kListedNotes) {
      ++left_out[problem.rule];
    } else {
      write_problem(problem);
    }
  }
  for (const UnlistedProblems& more : file_.report.unlisted) left_out[more.rule] += more.count;
  for (const auto& [rule, count] : left_out) {
    line(fmt::format("{} {} more of [{}]", coloured(kBold, name_ + ":"), count, rule));
  }
}

void ReportText::write_problem(const Problem& problem) {
  const std::string place = fmt::format("{}:{}:{}:", name_, problem.line, problem.column);
  const std::string severity = fmt::format("{}:", severity_word(problem.severity));
  line(fmt::format("{} {} {} [{}]", coloured(kBold, place),
                   coloured(colour_of(problem.severity), severity),
                   shown(problem.message, kMaxMessage_bytes), problem.rule));
  if (!problem.pointer.empty()) line("    at " + shown(problem.pointer, kMaxPointer_bytes));
  const sentry::Rule* rule = sentry::find_rule(problem.rule);
  if (rule != nullptr && explained_.insert(problem.rule).second) explain(*rule, problem);
}

void ReportText::explain(const sentry::Rule& rule, const Problem& problem) {
  const auto paragraph = [this](std::string_view head, std::string_view text) {
    if (!text.empty()) out_ += wrapped(head, text);
  };
  if (options_.against_relay) paragraph("    server:    ", rule.server);
  if (problem.is_against_documents) paragraph("    documents: ", rule.published);
  paragraph("    mend:      ", rule.mend);
}

std::string ReportText::counts() const {
  const std::vector<Problem>& problems = file_.report.problems;
  std::array<uint64_t, 3> count{};
  for (const Problem& problem : problems) ++count[static_cast<size_t>(problem.severity)];
  for (const UnlistedProblems& more : file_.report.unlisted) {
    const auto listed = std::find_if(problems.begin(), problems.end(),
                                     [&more](const Problem& p) { return p.rule == more.rule; });
    if (listed != problems.end()) count[static_cast<size_t>(listed->severity)] += more.count;
  }
  std::string text;
  for (const Severity severity : {Severity::Error, Severity::Warning, Severity::Note}) {
    const uint64_t number = count[static_cast<size_t>(severity)];
    if (number > 0) text += (text.empty() ? "" : ", ") + counted(number, severity_word(severity));
  }
  return text;
}

void ReportText::write_verdict() {
  const ValidationReport& report = file_.report;
  const std::string found = counts();
  line(fmt::format("{} {}{}{}{}", coloured(kBold, name_ + ":"),
                   report.valid ? coloured(kGreen, "valid") : coloured(kRed, "invalid"),
                   kind_noun(report.kind), found.empty() ? "" : ": ", found));
  write_reason();
}

// Which the server knows under another name: `upload` changes it.
bool ReportText::names_elf() const {
  return std::ranges::any_of(file_.report.problems, [](const Problem& problem) {
    return problem.rule == "image-type-elf" && problem.severity == Severity::Note;
  });
}

void ReportText::write_reason() {
  const ValidationReport& report = file_.report;
  if (!options_.against_relay) {
    line(report.documents.valid ? "  It keeps Sentry's published documents."
                                : "  It breaks Sentry's published documents.");
    return;
  }
  if (!report.relay.is_known) {
    line("  Whether Sentry accepts it is not known here.");
    return;
  }
  if (report.relay.valid) {
    line(!report.valid ? "  Sentry's server accepts it today, but its documents forbid it."
         : names_elf()
             ? "  Sentry accepts it from sentry-prof upload, which writes \"symbolic\" for \"elf\"."
             : "  Sentry accepts it.");
    return;
  }
  const std::string reason = report.relay.http_status != 0
                                 ? fmt::format("HTTP {}", report.relay.http_status)
                                 : std::string(report.relay.reason);
  line("  Sentry refuses it: " + coloured(kBold, reason));
  if (const Problem* problem = deciding_problem(report)) {
    line(fmt::format("  More: sentry-prof validate --explain {}", problem->rule));
  }
}

void ReportText::write_summary() {
  const ProfileSummary& summary = file_.report.summary;
  const double rate_hz =
      summary.duration_s > 0 ? static_cast<double>(summary.samples) / summary.duration_s : 0;
  line(fmt::format("  samples   {} of {} in {:.3f} s{}, {} of them idle", summary.samples,
                   counted(summary.threads, "thread"), summary.duration_s,
                   rate_hz > 0 ? fmt::format(" ({:.1f}/s)", rate_hz) : "", summary.idle_samples));
  line(fmt::format("  frames    {} in {}: {} with an address, {} with a function, {} with a line",
                   summary.frames, counted(summary.stacks, "stack"), summary.frames_with_address,
                   summary.frames_with_function, summary.frames_with_line));
  line(fmt::format("  images    {}", summary.images));
  if (!options_.against_relay) return;
  std::string dropped;
  const auto add = [&dropped](uint64_t count, std::string_view noun) {
    if (count > 0) dropped += (dropped.empty() ? "" : ", ") + counted(count, noun);
  };
  add(summary.dropped_samples, "sample");
  add(summary.dropped_threads, "thread");
  add(summary.dropped_thread_names, "unused thread name");
  line("  dropped   " + (dropped.empty() ? "nothing, by the server" : dropped + ", by the server"));
}

}  // namespace

std::string problem_text(const JudgedFile& file, const ValidateOptions& options, bool is_coloured) {
  return ReportText(file, options, is_coloured).write();
}

}  // namespace sentry_prof::cli
