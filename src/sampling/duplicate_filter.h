// Finds out which threads are sampled twice. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace sentry_prof::sampling {

// A thread that was born while its process was being attached may have inherited its parent's
// events and then have been given events of its own, on all CPUs or on some. The kernel does not
// say so, but samples do: those of an inherited event carry the identifier of the parent's. Once
// such a one is seen, the thread's own event on that CPU is superfluous. The parent's may be that
// of a late thread as well.
class DuplicateFilter {
 public:
  // A thread that was found only after the first events had been opened. To be told in the order in
  // which the events were opened.
  void add_late_event(uint32_t tid, uint32_t cpu, uint64_t identifier);

  struct Verdict {
    bool is_duplicate = false;                  // drop this sample
    std::optional<uint64_t> superfluous_event;  // close the event with this identifier
  };
  Verdict judge(uint32_t tid, uint32_t cpu, uint64_t identifier);
  // The tid may be given to another thread from now on.
  void forget_thread(uint32_t tid);
  // A thread was born: who had the tid before has ended, even if no record told (an exec by another
  // thread than the main one, or a lost record).
  void note_birth(uint32_t tid);

 private:
  struct LateEvent {
    size_t order = 0;  // in which they were opened
    bool is_superfluous = false;
  };
  static uint64_t key_of(uint32_t tid, uint32_t cpu) { return uint64_t{tid} << 32 | cpu; }

  void remember_source(uint32_t tid, uint32_t cpu, uint64_t identifier);

  std::unordered_map<uint64_t, LateEvent> late_events_;  // by identifier
  // The late event from which (tid, cpu) is sampled: its own, or that of a parent opened late.
  std::unordered_map<uint64_t, uint64_t> source_by_thread_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> cpus_by_tid_;
  std::unordered_set<uint32_t> late_tids_;  // whose own birth may still be in a ring
};

}  // namespace sentry_prof::sampling
