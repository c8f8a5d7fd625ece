// Rings, and events on all threads of the targets.
#pragma once

#include "sampling/duplicate_filter.h"
#include "sampling/file_budget.h"
#include "sampling/perf_attr.h"
#include "sampling/perf_rings.h"
#include "sampling/sampler.h"
#include "sampling/thread_events.h"

#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include <sys/types.h>

namespace sentry_prof::sampling {

struct TargetThread {
  pid_t pid, tid;
};

class PerfAttachment {
 public:
  explicit PerfAttachment(const SamplerOptions& options) : options_(options) {}

  // As Sampler's. Threads that may be sampled twice are told to `duplicates`. After a failure
  // nothing is attached.
  Result<void> attach(std::span<const pid_t> pids, DuplicateFilter& duplicates);
  Result<void> attach_before_exec(pid_t child);

  // Both empty before the first attach.
  std::span<PerfRing> rings() { return rings_; }
  OuterStacks* outer_stacks() { return outer_stacks_.get(); }  // null: none
  ThreadEvents* events() { return events_ ? &*events_ : nullptr; }
  // CPUs that are online now and have no ring: nothing is sampled there.
  uint32_t cpus_without_ring() const;
  const SamplerSetup& setup() const { return setup_; }

 private:
  // TwoEvents is the rule. OneEvent needs half the descriptors.
  enum class EventLayout { TwoEvents, OneEvent };

  Result<void> prepare(bool target_is_launched, std::span<const TargetThread> threads);
  Result<void> open_rings_for(std::span<const TargetThread> threads);
  void open_outer_stacks();
  void describe_setup();
  ThreadAttrs thread_attrs(EventLayout layout) const;
  void make_room_for_events();
  uint64_t events_needed(EventLayout layout) const;
  // 0, or the errno of what failed; then nothing is attached.
  int attach_all(std::span<const pid_t> pids, std::span<const TargetThread> first_threads,
                 EventLayout layout, DuplicateFilter& duplicates);
  // 0 or an errno, of the thread of a child before its exec; then nothing is attached.
  int open_before_exec(pid_t child, EventLayout layout);
  int open_new_threads(std::span<const TargetThread> threads, const ThreadAttrs& attrs,
                       DuplicateFilter* duplicates, std::unordered_set<pid_t>& known);
  Error explain(int error_number, std::span<const pid_t> pids) const;

  SamplerOptions options_;
  EventChoices choices_;
  SamplerSetup setup_;
  std::vector<PerfRing> rings_;
  std::unique_ptr<OuterStacks> outer_stacks_;
  std::optional<ThreadEvents> events_;  // after rings_: redirected into them
  pid_t refused_pid_ = 0;               // whose thread could not be opened, after a failure
  size_t threads_seen_ = 0;             // of the target
  FileBudget files_{0, 0};              // for events_
};

}  // namespace sentry_prof::sampling
