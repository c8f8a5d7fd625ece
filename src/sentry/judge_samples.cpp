#include "sentry/judge_samples.h"

#include "sentry/judge_samples_parts.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

// 30 million years: sums of it stay finite, as what is between the ends of a double does not.
constexpr double kLongestDuration_s = 1e15;

double duration_s(const ProfileFacts& facts) {
  if (facts.samples.empty()) return 0;
  const bool is_v1 = facts.kind == ValidatedKind::V1;
  const auto [oldest, newest] = std::minmax_element(
      facts.samples.begin(), facts.samples.end(),
      [is_v1](const SampleFact& a, const SampleFact& b) {
        return is_v1 ? a.elapsed_ns < b.elapsed_ns : a.timestamp_s < b.timestamp_s;
      });
  if (!is_v1) return std::min(newest->timestamp_s - oldest->timestamp_s, kLongestDuration_s);
  return static_cast<double>(newest->elapsed_ns - oldest->elapsed_ns) / 1e9;
}

void judge_stack_indices(const SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (judgement.stack_exists(samples[i])) continue;
    const std::string_view rule = judgement.is_kept[i] ? "sample-stack" : "sample-stack-dropped";
    if (!judgement.reports.takes(rule)) continue;
    judgement.reports.add(
        rule, i, "stack_id",
        samples[i].stack == UINT32_MAX
            ? fmt::format("there is no such stack: there are {}", judgement.facts.stacks.size())
            : fmt::format("there is no stack {}: there are {}, counted from 0", samples[i].stack,
                          judgement.facts.stacks.size()));
  }
}

std::string not_enough(const ProfileFacts& facts) {
  if (facts.samples.empty())
    return "there are no samples: the server refuses a profile without any";
  const bool has_active =
      std::any_of(facts.samples.begin(), facts.samples.end(), [&](const SampleFact& sample) {
        return sample.stack < facts.stacks.size() && !facts.stacks[sample.stack].is_empty;
      });
  if (!has_active) {
    return fmt::format("none of {} samples has a stack: an idle thread alone is no profile",
                       facts.samples.size());
  }
  return fmt::format(
      "of {} samples none is left, since no thread has two with a stack that count: record longer "
      "or "
      "at a higher rate",
      facts.samples.size());
}

void summarize(const SampleJudgement& judgement, ProfileSummary& summary) {
  const ProfileFacts& facts = judgement.facts;
  std::vector<bool> has_kept(facts.threads.size());
  for (size_t i = 0; i < facts.samples.size(); ++i) {
    if (judgement.is_kept[i]) has_kept[facts.samples[i].thread] = true;
  }
  summary.dropped_samples += facts.samples.size() - judgement.kept;
  for (size_t i = 0; i < facts.threads.size(); ++i) {
    summary.dropped_threads += facts.threads[i].has_samples && !has_kept[i] ? 1U : 0U;
  }
}

// Samples that are not all typed, or stacks, have been told of; what would be left of them is
// anybody's guess.
bool can_be_judged(const ProfileFacts& facts) {
  return facts.samples_are_typed && facts.stacks_are_typed;
}

}  // namespace

void judge_samples(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                   ProfileSummary& summary) {
  summary.duration_s += duration_s(facts);
  summary.samples += facts.samples.size();
  summary.idle_samples += static_cast<uint64_t>(
      std::count_if(facts.samples.begin(), facts.samples.end(), [&](const SampleFact& sample) {
        return sample.stack < facts.stacks.size() && facts.stacks[sample.stack].is_empty;
      }));
  if (!can_be_judged(facts)) return;
  const bool is_v1 = facts.kind == ValidatedKind::V1;
  ElementReports reports(text, facts.samples_offset, "/profile/samples", problems);
  SampleJudgement judgement{facts, reports, std::vector<bool>(facts.samples.size(), true),
                            facts.samples.size()};
  is_v1 ? drop_v1_samples(judgement) : drop_v2_samples(judgement);
  if (judgement.kept == 0) reports.add_whole("enough-samples", not_enough(facts));
  judge_stack_indices(judgement);
  is_v1 ? judge_v1_times(judgement) : judge_v2_times(judgement);
  summarize(judgement, summary);
  std::move(reports).report();
}

}  // namespace sentry_prof::sentry
