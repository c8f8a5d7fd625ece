#include "sentry/judge_samples_parts.h"
#include "sentry/text_places.h"
#include "sentry_prof/limits.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

// Of one thread's samples that are left: what the trimming of idle edges looks at.
struct ThreadEdges {
  size_t first_active = SIZE_MAX;
  size_t last_active = 0;
  size_t left = 0;
};

void drop_outside_window(SampleJudgement& judgement) {
  const ProfileFacts& facts = judgement.facts;
  if (facts.relative_end_ns == 0) return;
  size_t first = SIZE_MAX;
  for (size_t i = 0; i < facts.samples.size(); ++i) {
    const uint64_t elapsed_ns = facts.samples[i].elapsed_ns;
    if (elapsed_ns >= facts.relative_start_ns && elapsed_ns <= facts.relative_end_ns) continue;
    judgement.drop(i);
    first = std::min(first, i);
  }
  if (first == SIZE_MAX || !judgement.reports.takes("v1-window")) return;
  judgement.reports.add(
      "v1-window", first, "elapsed_since_start_ns",
      fmt::format(
          "{} of {} samples, this one first, lie outside the transaction's window from {} to "
          "{} ns and are dropped",
          facts.samples.size() - judgement.kept, facts.samples.size(), facts.relative_start_ns,
          facts.relative_end_ns));
}

std::vector<ThreadEdges> find_edges(const SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  std::vector<ThreadEdges> edges(judgement.facts.threads.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!judgement.is_kept[i] || !judgement.is_active(samples[i])) continue;
    ThreadEdges& thread = edges[samples[i].thread];
    thread.first_active = std::min(thread.first_active, i);
    thread.last_active = i;
  }
  return edges;
}

void tell_idle_edge(const SampleJudgement& judgement, size_t sample, bool is_always_idle) {
  if (!judgement.reports.takes("v1-idle-edges")) return;
  const std::string thread =
      quoted(judgement.facts.threads[judgement.facts.samples[sample].thread].id);
  judgement.reports.add(
      "v1-idle-edges", sample, {},
      is_always_idle
          ? fmt::format("thread {} has no sample with a stack: it disappears", thread)
          : fmt::format("thread {} is idle here, before its first or after its last sample with a "
                        "stack: such samples are dropped",
                        thread));
}

// Told once for each thread, at its first sample that is dropped.
void trim_idle_edges(SampleJudgement& judgement, std::vector<ThreadEdges>& edges) {
  const auto& samples = judgement.facts.samples;
  std::vector<bool> is_told(edges.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!judgement.is_kept[i]) continue;
    ThreadEdges& thread = edges[samples[i].thread];
    if (i >= thread.first_active && i <= thread.last_active) {
      ++thread.left;
      continue;
    }
    judgement.drop(i);
    if (is_told[samples[i].thread]) continue;
    is_told[samples[i].thread] = true;
    tell_idle_edge(judgement, i, thread.first_active == SIZE_MAX);
  }
}

void drop_single_samples(SampleJudgement& judgement, const std::vector<ThreadEdges>& edges) {
  const auto& samples = judgement.facts.samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!judgement.is_kept[i] || edges[samples[i].thread].left != 1) continue;
    judgement.drop(i);
    if (!judgement.reports.takes("v1-thread-one-sample")) continue;
    judgement.reports.add(
        "v1-thread-one-sample", i, "thread_id",
        fmt::format("this is the only sample left of thread {}: the server drops the thread",
                    quoted(judgement.facts.threads[samples[i].thread].id)));
  }
}

// The server looks at the last element, wherever its time stands among the others.
void judge_last_sample(const SampleJudgement& judgement, uint64_t span_ns) {
  if (judgement.kept == 0) return;
  const auto& samples = judgement.facts.samples;
  size_t last = samples.size() - 1;
  while (!judgement.is_kept[last]) --last;
  if (samples[last].elapsed_ns <= limits::kV1MaxDuration_ns ||
      !judgement.reports.takes("v1-duration"))
    return;
  judgement.reports.add(
      "v1-duration", last, "elapsed_since_start_ns",
      fmt::format(
          "the last sample was taken {} ns after the start, the server takes 30000000000 at "
          "most{}",
          samples[last].elapsed_ns,
          span_ns <= limits::kV1MaxDuration_ns
              ? "; samples span less: subtract the first one's time from all"
              : "; split the profile"));
}

void judge_span(const SampleJudgement& judgement, size_t newest, uint64_t span_ns) {
  if (span_ns <= limits::kV1MaxDuration_ns || !judgement.reports.takes("v1-span")) return;
  judgement.reports.add(
      "v1-span", newest, "elapsed_since_start_ns",
      fmt::format(
          "the newest sample was taken {} ns after the oldest, 30000000000 are allowed; split "
          "the profile",
          span_ns));
}

void judge_v1_order(const SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  size_t first = 0;
  size_t steps_back = 0;
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].elapsed_ns >= samples[i - 1].elapsed_ns) continue;
    if (steps_back++ == 0) first = i;
  }
  if (steps_back == 0 || !judgement.reports.takes("v1-samples-order")) return;
  judgement.reports.add(
      "v1-samples-order", first, "elapsed_since_start_ns",
      fmt::format("{} samples, this one first, are older than the one before them; sort them: the "
                  "server does not",
                  steps_back));
}

}  // namespace

void drop_v1_samples(SampleJudgement& judgement) {
  drop_outside_window(judgement);
  std::vector<ThreadEdges> edges = find_edges(judgement);
  trim_idle_edges(judgement, edges);
  drop_single_samples(judgement, edges);
}

void judge_v1_times(const SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  if (samples.size() < limits::kMinSamplesPerThread) {
    judgement.reports.add_whole("v1-two-samples",
                                fmt::format("{} samples, there must be two", samples.size()));
  }
  if (samples.empty()) return;
  const auto [oldest, newest] = std::minmax_element(
      samples.begin(), samples.end(),
      [](const SampleFact& a, const SampleFact& b) { return a.elapsed_ns < b.elapsed_ns; });
  const uint64_t span_ns = newest->elapsed_ns - oldest->elapsed_ns;
  judge_last_sample(judgement, span_ns);
  judge_span(judgement, static_cast<size_t>(newest - samples.begin()), span_ns);
  judge_v1_order(judgement);
}

}  // namespace sentry_prof::sentry
