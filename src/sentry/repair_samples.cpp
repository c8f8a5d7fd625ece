#include "sentry/repair_samples.h"

#include "sentry/judge_samples_parts.h"
#include "sentry/problem_list.h"
#include "sentry_prof/limits.h"

#include <algorithm>
#include <numeric>

namespace sentry_prof::sentry {

namespace {

// By the judges themselves: what they warn of is what goes.
std::vector<bool> kept_by_server(const ProfileFacts& facts, std::string_view text) {
  ProblemList nobody_reads({});
  ElementReports reports(text, facts.samples_offset, {}, nobody_reads);
  SampleJudgement judgement{facts, reports, std::vector<bool>(facts.samples.size(), true),
                            facts.samples.size()};
  facts.kind == ValidatedKind::V1 ? drop_v1_samples(judgement) : drop_v2_samples(judgement);
  return std::move(judgement.is_kept);
}

class SampleChoice {
 public:
  SampleChoice(ProfileFacts& facts, std::string_view text) : facts_(facts), text_(text) {}

  std::vector<uint32_t> run(ChangeList& changes);

 private:
  bool is_earlier(const SampleFact& a, const SampleFact& b) const {
    return facts_.kind == ValidatedKind::V1 ? a.elapsed_ns < b.elapsed_ns
                                            : a.timestamp_s < b.timestamp_s;
  }
  bool is_sorted() const;
  bool can_be_sorted(const std::vector<bool>& kept) const;
  void sort();
  template <typename IsKept>
  void keep_only(IsKept is_kept);

  ProfileFacts& facts_;
  std::string_view text_;
  std::vector<uint32_t> order_;
};

std::vector<uint32_t> SampleChoice::run(ChangeList& changes) {
  const std::vector<bool> kept = kept_by_server(facts_, text_);
  if (std::find(kept.begin(), kept.end(), true) == kept.end()) return {};
  const size_t all = kept.size();
  order_.resize(all);
  std::iota(order_.begin(), order_.end(), 0);
  const bool must_be_sorted = !is_sorted() && can_be_sorted(kept);
  // Among others in time they would no longer be dropped in silence, but refused.
  keep_only([&](size_t i) { return kept[i] || facts_.samples[i].stack < facts_.stacks.size(); });
  if (must_be_sorted) sort();
  const std::vector<bool> kept_of_sorted = kept_by_server(facts_, text_);
  keep_only([&](size_t i) { return kept_of_sorted[i]; });
  if (order_.empty()) return {};
  if (!std::is_sorted(order_.begin(), order_.end())) changes.add(Change::SamplesSorted);
  changes.add(Change::Sample, all - order_.size());
  return std::move(order_);
}

bool SampleChoice::is_sorted() const {
  return std::is_sorted(
      facts_.samples.begin(), facts_.samples.end(),
      [this](const SampleFact& a, const SampleFact& b) { return is_earlier(a, b); });
}

bool SampleChoice::can_be_sorted(const std::vector<bool>& kept) const {
  if (facts_.kind != ValidatedKind::V1) return true;
  uint64_t newest_ns = 0;
  uint64_t last_ns = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    last_ns = facts_.samples[i].elapsed_ns;
    newest_ns = std::max(newest_ns, last_ns);
  }
  return newest_ns <= limits::kV1MaxDuration_ns || last_ns > limits::kV1MaxDuration_ns;
}

void SampleChoice::sort() {
  std::vector<uint32_t> places(order_.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [this](uint32_t a, uint32_t b) {
    return is_earlier(facts_.samples[a], facts_.samples[b]);
  });
  std::vector<SampleFact> samples;
  samples.reserve(places.size());
  for (const uint32_t place : places) samples.push_back(facts_.samples[place]);
  facts_.samples = std::move(samples);
  for (uint32_t& place : places) place = order_[place];
  order_ = std::move(places);
}

template <typename IsKept>
void SampleChoice::keep_only(IsKept is_kept) {
  size_t count = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    if (!is_kept(i)) continue;
    order_[count] = order_[i];
    facts_.samples[count++] = facts_.samples[i];
  }
  order_.resize(count);
  facts_.samples.resize(count);
}

}  // namespace

std::vector<uint32_t> choose_samples(ProfileFacts& facts, std::string_view text,
                                     ChangeList& changes) {
  return SampleChoice(facts, text).run(changes);
}

}  // namespace sentry_prof::sentry
