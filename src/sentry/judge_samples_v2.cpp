#include "sentry/judge_samples_parts.h"
#include "sentry/text_places.h"
#include "sentry_prof/limits.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

constexpr double kLongestS = double{limits::kV2MaxDuration_ns} / 1e9;
// September 2001 and the year 2286: no profile in seconds is from outside, one in milliseconds
// always is.
constexpr double kOldestPlausibleS = 1e9;
constexpr double kNewestPlausibleS = 1e10;

struct ThreadSamples {
  size_t first = SIZE_MAX;
  size_t active = 0;
};

std::vector<ThreadSamples> count_active(const SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  std::vector<ThreadSamples> threads(judgement.facts.threads.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    ThreadSamples& thread = threads[samples[i].thread];
    thread.first = std::min(thread.first, i);
    thread.active += judgement.is_active(samples[i]) ? 1U : 0U;
  }
  return threads;
}

void tell_dropped_thread(const SampleJudgement& judgement, const ThreadSamples& thread) {
  if (!judgement.reports.takes("v2-thread-one-sample")) return;
  const ProfileFacts& facts = judgement.facts;
  judgement.reports.add(
      "v2-thread-one-sample", thread.first, "thread_id",
      fmt::format("thread {} has {} that is not idle: the server drops the thread",
                  quoted(facts.threads[facts.samples[thread.first].thread].id),
                  thread.active == 0 ? "no sample" : "only one sample"));
}

std::string_view unit_of(double timestamp) {
  if (timestamp < 0) return "it lies before 1970";
  if (timestamp < kOldestPlausibleS) return "it lies near 1970: is it the time since the start?";
  if (timestamp < 1e14) return "it looks like milliseconds: divide by 1000";
  if (timestamp < 1e17) return "it looks like microseconds: divide by 1000000";
  return "it looks like nanoseconds: divide by 1000000000";
}

void judge_plausibility(const SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  const auto is_odd = [](const SampleFact& sample) {
    return !(sample.timestamp_s >= kOldestPlausibleS && sample.timestamp_s < kNewestPlausibleS);
  };
  const auto first = std::find_if(samples.begin(), samples.end(), is_odd);
  if (first == samples.end() || !judgement.reports.takes("v2-timestamp-time")) return;
  judgement.reports.add(
      "v2-timestamp-time", static_cast<size_t>(first - samples.begin()), "timestamp",
      fmt::format("{} is no Unix time in seconds of our days: {} ({} of {} samples)",
                  first->timestamp_s, unit_of(first->timestamp_s),
                  std::count_if(first, samples.end(), is_odd), samples.size()));
}

void judge_v2_order(const SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  size_t first = 0;
  size_t steps_back = 0;
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].timestamp_s >= samples[i - 1].timestamp_s) continue;
    if (steps_back++ == 0) first = i;
  }
  if (steps_back == 0 || !judgement.reports.takes("v2-samples-order")) return;
  judgement.reports.add(
      "v2-samples-order", first, "timestamp",
      fmt::format("{} samples, this one first, are older than the one before them", steps_back));
}

void judge_span(const SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  size_t oldest = SIZE_MAX;
  size_t newest = SIZE_MAX;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!judgement.is_kept[i]) continue;
    if (oldest == SIZE_MAX || samples[i].timestamp_s < samples[oldest].timestamp_s) oldest = i;
    if (newest == SIZE_MAX || samples[i].timestamp_s > samples[newest].timestamp_s) newest = i;
  }
  if (oldest == SIZE_MAX) return;
  const double span_s = samples[newest].timestamp_s - samples[oldest].timestamp_s;
  if (!(span_s > kLongestS) || !judgement.reports.takes("v2-duration")) return;
  judgement.reports.add(
      "v2-duration", newest, "timestamp",
      fmt::format("samples span {:.3f} s, the server takes 66 s at most: split the "
                  "recording into chunks of 60 s",
                  span_s));
}

}  // namespace

void drop_v2_samples(SampleJudgement& judgement) {
  const auto& samples = judgement.facts.samples;
  const std::vector<ThreadSamples> threads = count_active(judgement);
  for (size_t i = 0; i < samples.size(); ++i) {
    const ThreadSamples& thread = threads[samples[i].thread];
    if (thread.active >= limits::kMinSamplesPerThread) continue;
    judgement.drop(i);
    if (thread.first == i) tell_dropped_thread(judgement, thread);
  }
}

void judge_v2_times(const SampleJudgement& judgement) {
  judge_span(judgement);
  judge_plausibility(judgement);
  judge_v2_order(judgement);
}

}  // namespace sentry_prof::sentry
