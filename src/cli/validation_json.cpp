#include "cli/validation_json.h"

#include "base/json_writer.h"
#include "cli/report_words.h"

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

std::string_view kind_word(ValidatedKind kind) {
  switch (kind) {
    case ValidatedKind::V1:
      return "v1";
    case ValidatedKind::V2:
      return "v2";
    case ValidatedKind::Envelope:
      return "envelope";
    case ValidatedKind::Unknown:
      break;
  }
  return "unknown";
}

std::string_view against_word(const Problem& problem) {
  if (problem.is_against_relay && problem.is_against_documents) return "both";
  if (problem.is_against_relay) return "relay";
  return problem.is_against_documents ? "documents" : "none";
}

std::string_view error_kind(const Error& error) {
  switch (error.code) {
    case ErrorCode::Malformed:
      return "damaged";
    case ErrorCode::LimitExceeded:
      return "too_large";
    default:
      return "unreadable";
  }
}

void write_verdict(JsonWriter& json, std::string_view book, const Verdict& verdict,
                   bool was_asked) {
  json.key(book);
  json.begin_object();
  json.key("valid");
  const bool has_verdict = was_asked && verdict.is_known;
  has_verdict ? json.boolean(verdict.valid) : json.raw("null");
  json.key("reason");
  verdict.reason.empty() ? json.raw("null") : json.string(verdict.reason);
  if (verdict.http_status != 0) {
    json.key("http_status");
    json.number(verdict.http_status);
  }
  json.end_object();
}

void write_problem(JsonWriter& json, const Problem& problem) {
  json.begin_object();
  json.member("severity", severity_word(problem.severity));
  json.member("rule", problem.rule);
  json.member("against", against_word(problem));
  json.member("pointer", problem.pointer);
  json.key("line");
  json.number(problem.line);
  json.key("column");
  json.number(problem.column);
  json.member("message", problem.message);
  json.end_object();
}

void write_problems(JsonWriter& json, const ValidationReport& report) {
  json.key("problems");
  json.begin_array();
  for (const Problem& problem : report.problems) write_problem(json, problem);
  json.end_array();
  json.key("unlisted");
  json.begin_array();
  for (const UnlistedProblems& unlisted : report.unlisted) {
    json.begin_object();
    json.member("rule", unlisted.rule);
    json.key("count");
    json.number(unlisted.count);
    json.end_object();
  }
  json.end_array();
}

void write_summary(JsonWriter& json, const ProfileSummary& summary) {
  const auto figure = [&json](std::string_view name, uint64_t value) {
    json.key(name);
    json.number(value);
  };
  json.key("summary");
  json.begin_object();
  json.key("duration_s");
  json.raw(fmt::format("{:.6f}", summary.duration_s));
  figure("samples", summary.samples);
  figure("idle_samples", summary.idle_samples);
  figure("threads", summary.threads);
  figure("stacks", summary.stacks);
  figure("frames", summary.frames);
  figure("frames_with_function", summary.frames_with_function);
  figure("frames_with_line", summary.frames_with_line);
  figure("frames_with_address", summary.frames_with_address);
  figure("images", summary.images);
  figure("dropped_samples", summary.dropped_samples);
  figure("dropped_threads", summary.dropped_threads);
  figure("dropped_thread_names", summary.dropped_thread_names);
  json.end_object();
}

void write_fixes(JsonWriter& json, const std::vector<RepairChange>& fixes) {
  json.key("fixes");
  json.begin_array();
  for (const RepairChange& fix : fixes) {
    json.begin_object();
    json.member("what", fix.what);
    json.key("rule");
    fix.rule.empty() ? json.raw("null") : json.string(fix.rule);
    json.key("count");
    json.number(fix.count);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string validation_json(const JudgedFile& file, const ValidateOptions& options) {
  std::string out;
  JsonWriter json(out);
  const bool was_judged = !file.error;
  json.begin_object();
  json.member("file", file.name);
  json.member("kind", kind_word(file.report.kind));
  json.key("valid");
  json.boolean(file.is_valid());
  if (file.error) {
    json.member("error", file.error->message);
    json.member("error_kind", error_kind(*file.error));
  }
  if (file.fixes) write_fixes(json, *file.fixes);
  write_verdict(json, "relay", file.report.relay, was_judged && options.against_relay);
  write_verdict(json, "documents", file.report.documents, was_judged && options.against_documents);
  write_problems(json, file.report);
  write_summary(json, file.report.summary);
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace sentry_prof::cli
