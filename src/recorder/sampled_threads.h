// The threads of a recording: which of them a chunk has, and when they left the CPU.
#pragma once

#include "profile/chunk_builder.h"
#include "recorder/figures.h"
#include "recorder/thread_activity.h"
#include "target/process_table.h"

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sentry_prof::recorder {

// Adds idle markers and names to the chunk, and counts both and the time on CPUs in `figures`.
// Refers to all that it is given.
class SampledThreads {
 public:
  SampledThreads(profile::ChunkBuilder& builder, target::ProcessTable& processes,
                 SampleFigures& figures, uint64_t sampling_period_ns)
      : builder_(builder),
        processes_(processes),
        figures_(figures),
        sampling_period_ns_(sampling_period_ns) {}

  // The thread's index in the chunk.
  uint32_t on_sample(uint32_t pid, uint32_t tid, uint64_t time_ns);
  void on_switch(uint32_t pid, uint32_t tid, bool is_out, uint64_t time_ns);
  // In order of time, as all events.
  void on_records_lost(uint64_t time_ns);

  // Nothing is done where the thread is not known.
  void end(uint32_t tid, uint64_t time_ns);
  // exec ends all threads but the caller, which takes over the process's pid as its tid. No exit
  // record tells of the caller's old tid. Without a survivor: all.
  void end_others(uint32_t pid, std::optional<uint32_t> survivor_tid, uint64_t time_ns);

  // Before the chunk is taken from the builder. Visits the threads that are in it: there may be
  // many others, and many chunks in which nothing happened.
  void end_chunk(uint64_t end_ns);
  // The run ends, and with it a last chunk.
  void leave_cpus(uint64_t end_ns);
  void end_all();

 private:
  struct Thread {
    uint32_t pid = 0;
    uint32_t generation = 0;
    uint32_t chunk_serial = 0;  // the chunk that chunk_thread is an index in; 0: none
    uint32_t chunk_thread = 0;
    size_t losses_seen = 0;  // of losses_ns_
    ThreadActivity activity;
  };
  // A machine that is overloaded loses records again and again, each time perhaps some of any of
  // thousands of threads. A thread learns of the losses with its next event, all of them once there
  // are so many.
  static constexpr size_t kMaxLosses = 1024;

  Thread& thread(uint32_t pid, uint32_t tid, uint64_t time_ns);
  void learn_losses(Thread& thread);
  void learn_all_losses();
  void end_unsampled(uint64_t time_ns);
  uint32_t index_in_chunk(Thread& thread, uint32_t tid);
  void add_marker(Thread& thread, uint32_t tid, std::optional<uint64_t> time_ns);
  void name_in_chunk(const Thread& thread, uint32_t tid);

  profile::ChunkBuilder& builder_;
  target::ProcessTable& processes_;
  SampleFigures& figures_;
  const uint64_t sampling_period_ns_;
  std::unordered_map<uint32_t, Thread> threads_;        // by tid; ended threads are removed
  std::set<std::pair<uint32_t, uint32_t>> by_process_;  // their pids and tids
  std::vector<uint64_t> losses_ns_;                     // when records were lost
  std::vector<uint32_t> chunk_tids_;  // of the chunk's threads; one that began anew stands twice
  uint32_t chunk_serial_ = 1;
};

}  // namespace sentry_prof::recorder
