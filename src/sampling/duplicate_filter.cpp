#include "sampling/duplicate_filter.h"

#include <utility>

namespace sentry_prof::sampling {

void DuplicateFilter::add_late_event(uint32_t tid, uint32_t cpu, uint64_t identifier) {
  late_events_[identifier] = {.order = late_events_.size()};
  remember_source(tid, cpu, identifier);
  late_tids_.insert(tid);
}

void DuplicateFilter::remember_source(uint32_t tid, uint32_t cpu, uint64_t identifier) {
  const auto [source, is_new] = source_by_thread_.insert_or_assign(key_of(tid, cpu), identifier);
  if (is_new) cpus_by_tid_[tid].push_back(cpu);
}

DuplicateFilter::Verdict DuplicateFilter::judge(uint32_t tid, uint32_t cpu, uint64_t identifier) {
  if (late_events_.empty()) return {};
  const auto late = late_events_.find(identifier);
  const bool is_late = late != late_events_.end();
  if (is_late && late->second.is_superfluous) return {.is_duplicate = true};
  const auto source = source_by_thread_.find(key_of(tid, cpu));
  if (source == source_by_thread_.end()) {
    // Also for the children of a late thread, which inherit both of its events.
    if (is_late) remember_source(tid, cpu, identifier);
    return {};
  }
  if (source->second == identifier) return {};
  const uint64_t other = source->second;
  // Of two late events the first was there when the second one's thread was born, which thus
  // inherited it.
  if (is_late && late->second.order > late_events_[other].order) {
    late->second.is_superfluous = true;
    return {.is_duplicate = true, .superfluous_event = identifier};
  }
  if (is_late) {
    source->second = identifier;
  } else {
    source_by_thread_.erase(source);
  }
  if (std::exchange(late_events_[other].is_superfluous, true)) return {};
  return {.superfluous_event = other};
}

void DuplicateFilter::note_birth(uint32_t tid) {
  if (late_tids_.erase(tid) == 0) forget_thread(tid);
}

void DuplicateFilter::forget_thread(uint32_t tid) {
  late_tids_.erase(tid);
  const auto cpus = cpus_by_tid_.find(tid);
  if (cpus == cpus_by_tid_.end()) return;
  for (uint32_t cpu : cpus->second) source_by_thread_.erase(key_of(tid, cpu));
  cpus_by_tid_.erase(cpus);
}

}  // namespace sentry_prof::sampling
