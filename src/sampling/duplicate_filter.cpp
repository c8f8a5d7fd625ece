#include "sampling/duplicate_filter.h"

namespace sentry_prof::sampling {

void DuplicateFilter::add_late_event(uint32_t tid, uint32_t cpu, uint64_t identifier) {
  is_superfluous_by_identifier_[identifier] = false;
  late_identifier_by_thread_[key_of(tid, cpu)] = identifier;
  cpus_by_tid_[tid].push_back(cpu);
}

DuplicateFilter::Verdict DuplicateFilter::judge(uint32_t tid, uint32_t cpu, uint64_t identifier) {
  if (is_superfluous_by_identifier_.empty()) return {};
  const auto own = is_superfluous_by_identifier_.find(identifier);
  if (own != is_superfluous_by_identifier_.end()) {
    if (own->second) return {.is_duplicate = true};
    // Also for the children of a late thread, which inherit both of its events.
    const bool is_new = late_identifier_by_thread_.emplace(key_of(tid, cpu), identifier).second;
    if (is_new) cpus_by_tid_[tid].push_back(cpu);
    return {};
  }
  const auto late = late_identifier_by_thread_.find(key_of(tid, cpu));
  if (late == late_identifier_by_thread_.end()) return {};
  const uint64_t superfluous = late->second;
  late_identifier_by_thread_.erase(late);
  bool& is_superfluous = is_superfluous_by_identifier_[superfluous];
  if (is_superfluous) return {};
  is_superfluous = true;
  return {.superfluous_event = superfluous};
}

void DuplicateFilter::forget_thread(uint32_t tid) {
  const auto cpus = cpus_by_tid_.find(tid);
  if (cpus == cpus_by_tid_.end()) return;
  for (uint32_t cpu : cpus->second) late_identifier_by_thread_.erase(key_of(tid, cpu));
  cpus_by_tid_.erase(cpus);
}

}  // namespace sentry_prof::sampling
