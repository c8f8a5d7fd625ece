// The events on the target's threads, redirected into the rings.
#pragma once

#include "os/fd.h"
#include "sampling/outer_stacks.h"
#include "sampling/perf_attr.h"
#include "sampling/perf_rings.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

namespace sentry_prof::sampling {

// What is opened on each thread and CPU.
struct ThreadAttrs {
  std::optional<perf_event_attr> side_band;  // none: the sampling event tells of both
  perf_event_attr sampling{};
  const OuterStacks* outer_stacks = nullptr;  // null: none
};

// What all sampling events counted.
struct EventTotals {
  // Late events that doubled others included; nothing where the kernel does not count losses.
  std::optional<uint64_t> lost;
  uint64_t on_cpu_ns = 0;
};

class ThreadEvents {
 public:
  // A thread found late may have inherited events as well; see DuplicateFilter.
  using OnLateEvent = std::function<void(uint32_t tid, uint32_t cpu, uint64_t identifier)>;

  // Opens no more than `limit` descriptors. `rings` must outlive this.
  ThreadEvents(std::span<const PerfRing> rings, uint64_t limit) : rings_(rings), limit_(limit) {}

  // 0, or the errno of what failed: ESRCH if the thread has ended, EMFILE at the limit. On failure
  // the thread has no events. `on_late_event` may be empty.
  int open_thread(pid_t tid, const ThreadAttrs& attrs, const OnLateEvent& on_late_event);
  // Closes what the late event with this identifier and its side band doubled.
  void close_late_event(uint64_t identifier);
  // Ends the sampling events and sums up what they counted. To be called before rings are paused,
  // which loses samples as well.
  EventTotals end_and_read();
  // No more samples. Inherited events end with the one they come from.
  void close_sampling() { sampling_.clear(); }

 private:
  struct EventPlaces {
    size_t sampling_index;
    std::optional<size_t> side_band_index;
  };
  struct NewEvent {
    int cpu;
    EventPlaces places;
  };
  int open_on_ring(pid_t tid, const PerfRing& ring, const ThreadAttrs& attrs);
  int open_redirected(pid_t tid, const PerfRing& ring, const perf_event_attr& attr,
                      std::vector<os::Fd>& events);
  NewEvent newest_event(const PerfRing& ring, const ThreadAttrs& attrs) const;
  void remember_late(pid_t tid, std::span<const NewEvent> events, const OnLateEvent& on_late_event);

  std::span<const PerfRing> rings_;
  uint64_t limit_;
  std::vector<os::Fd> side_band_, sampling_;
  std::unordered_map<uint64_t, EventPlaces> late_events_;
  uint64_t lost_by_closed_ = 0;  // late events
};

}  // namespace sentry_prof::sampling
