// While a thread is off the CPU, its last stack must not be drawn as work: Sentry stretches a
// sample until the thread's next one. Switch records tell when; this decides where an idle marker
// (a sample with an empty stack) belongs. Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace sentry_prof::recorder {

// One thread's presence on the CPU, in time order. All times are CLOCK_MONOTONIC nanoseconds.
//
// A sample stands for one period of CPU time. Absences since it that add up to more than two
// periods are not drawn as work: those of a thread that sleeps long, from where it left the CPU; of
// one that wakes up often and does little, from where it left first once the sample had lasted a
// period.
class ThreadActivity {
 public:
  // Each returns the time of an idle marker that is now known to belong into the current chunk.
  std::optional<uint64_t> on_switch_in(uint64_t time_ns, uint64_t period_ns);
  std::optional<uint64_t> on_exit(uint64_t time_ns);
  // The chunk ends: a thread that has been away long enough by then is idle in it.
  std::optional<uint64_t> on_chunk_end(uint64_t time_ns, uint64_t period_ns);

  void on_switch_out(uint64_t time_ns);
  // A sample proves that the thread is on the CPU, even if its switch record was lost: answers as
  // on_switch_in() does. The marker is older than the sample, and belongs before it.
  std::optional<uint64_t> on_sample(uint64_t time_ns, uint64_t period_ns);

  // Records were lost, perhaps of this thread's leaving: it counts as away until it shows up again.
  void on_records_lost(uint64_t time_ns) {
    if (on_since_ns_ != 0) on_switch_out(time_ns);
  }
  // The run ends: a thread that is on the CPU is taken off it.
  void leave_cpu(uint64_t time_ns);

  // Time on the CPU so far, as far as records tell.
  uint64_t on_cpu_ns() const { return on_cpu_ns_; }

 private:
  std::optional<uint64_t> close_absence(uint64_t time_ns, uint64_t period_ns);

  uint64_t on_since_ns_ = 0;   // 0: not known to be on the CPU
  uint64_t off_since_ns_ = 0;  // 0: not known to be off the CPU
  uint64_t on_cpu_ns_ = 0;
  uint64_t sample_end_ns_ = 0;   // one period behind the last sample
  uint64_t away_ns_ = 0;         // in all absences since the last sample
  uint64_t left_behind_ns_ = 0;  // when it first left behind that end; 0: it has not
  bool has_open_stack_ = false;  // a stack was sampled in this chunk and no marker has closed it
};

}  // namespace sentry_prof::recorder
