// What the judges of V1 and V2 samples share. Both follow the server's normalisation step by step
// and keep a list of which samples are left.
#pragma once

#include "sentry/element_reports.h"
#include "sentry/profile_facts.h"

#include <vector>

namespace sentry_prof::sentry {

struct SampleJudgement {
  const ProfileFacts& facts;
  ElementReports& reports;
  std::vector<bool> is_kept;  // by sample
  size_t kept = 0;

  bool stack_exists(const SampleFact& sample) const { return sample.stack < facts.stacks.size(); }
  bool is_active(const SampleFact& sample) const {
    return stack_exists(sample) && !facts.stacks[sample.stack].is_empty;
  }
  void drop(size_t sample) {
    is_kept[sample] = false;
    --kept;
  }
};

// Drop what the server drops.
void drop_v1_samples(SampleJudgement& judgement);
void drop_v2_samples(SampleJudgement& judgement);

// Rules on when samples were taken, of those kept and of all.
void judge_v1_times(const SampleJudgement& judgement);
void judge_v2_times(const SampleJudgement& judgement);

}  // namespace sentry_prof::sentry
