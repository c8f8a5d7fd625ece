// The driver: which kind of file it is, one scan, then the judges.
#include "sentry_prof/validate.h"

#include "sentry/judge_envelope.h"
#include "sentry/judge_images.h"
#include "sentry/judge_samples.h"
#include "sentry/judge_stacks.h"
#include "sentry/judge_threads.h"
#include "sentry/problem_list.h"
#include "sentry/profile_scan.h"
#include "sentry/text_kind.h"
#include "sentry/text_places.h"
#include "sentry_prof/limits.h"

#include <utility>

#include <fmt/format.h>

namespace sentry_prof {

namespace {

using sentry::ProblemList;
using sentry::ProfileFacts;

// What cannot be read to its end would be judged by what happens to stand in front of the fault;
// what has no samples, by none.
void judge_meaning(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                   ProfileSummary& summary) {
  if (!facts.is_whole) return;
  sentry::judge_samples(facts, text, problems, summary);
  sentry::judge_threads(facts, text, problems, summary);
  sentry::judge_stacks(facts, text, problems, summary);
  sentry::judge_images(facts, text, problems, summary);
}

ProfileFacts judge_profile(std::string_view payload, ValidatedKind declared, ProblemList& problems,
                           ProfileSummary& summary) {
  const ProblemList::Mark before = problems.mark();
  ProfileFacts facts = sentry::scan_profile(payload, declared, problems);
  if (facts.is_whole && facts.is_android_format) {
    problems.go_back_to(before);
    problems.add("android-format", "/platform", sentry::path_offset(payload, {"platform"}),
                 "this is Android's own format, which is not judged");
    return facts;
  }
  judge_meaning(facts, payload, problems, summary);
  return facts;
}

bool is_too_large(std::string_view text, const ValidateOptions& options) {
  return options.has_size_limit && options.against_relay && text.size() > limits::kMaxItem_bytes;
}

void judge_file(std::string_view text, const ValidateOptions& options, ProblemList& problems,
                ValidationReport& report) {
  report.kind = sentry::profile_kind(text);
  if (is_too_large(text, options)) {  // the server does not read it either
    problems.add("profile-size", "", 0,
                 fmt::format("it has {} bytes, the server takes at most {}", text.size(),
                             limits::kMaxItem_bytes));
    return;
  }
  const ValidatedKind kind =
      report.kind == ValidatedKind::Unknown ? ValidatedKind::V1 : report.kind;
  judge_profile(text, kind, problems, report.summary);
}

}  // namespace

ValidationReport validate(std::string_view text, const ValidateOptions& options) {
  ValidationReport report;
  ProblemList problems(options);
  if (sentry::looks_like_envelope(text)) {
    report.kind = ValidatedKind::Envelope;
    sentry::judge_envelope(text, options, judge_profile, problems, report.summary);
  } else {
    judge_file(text, options, problems, report);
  }
  std::move(problems).finish(text, report);
  return report;
}

}  // namespace sentry_prof
