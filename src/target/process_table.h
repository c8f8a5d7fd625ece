// Processes, their threads and address spaces, kept up to date by side-band events. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "target/image_store.h"
#include "unwind/module_map.h"

namespace sentry_prof::target {

struct Process {
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  std::string name;               // comm of the main thread
  unwind::ModuleMap modules;
  bool has_exited = false;
};

struct ThreadState {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t generation = 0;        // counts reuses of the tid in this session
  std::string name;               // comm
};

// What was read from /proc when the session attached to a running process.
struct ProcessSnapshot {
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  std::string name;
  std::vector<std::pair<uint32_t, std::string>> threads;  // tid, comm
  std::vector<MappingFacts> mappings;                     // executable ones
  uint64_t taken_at_ns = 0;       // CLOCK_MONOTONIC before reading: older map events are skipped
};

class ProcessTable {
 public:
  explicit ProcessTable(ImageStore& images);

  void on_snapshot(const ProcessSnapshot& snapshot);
  void on_map(uint64_t time_ns, const MappingFacts& mapping);
  void on_comm(uint32_t pid, uint32_t tid, std::string_view name, bool is_exec);
  void on_fork(uint32_t pid, uint32_t tid, uint32_t parent_pid, uint32_t parent_tid);
  void on_exit(uint32_t pid, uint32_t tid);

  // Unknown pids and tids are created empty: their records were lost, or come later.
  Process& process(uint32_t pid);
  ThreadState& thread(uint32_t pid, uint32_t tid);

  size_t process_count() const;      // all that were ever seen
  size_t thread_count() const;       // all that were ever seen

 private:
  ImageStore& images_;
  struct Entry;
  std::unordered_map<uint32_t, Process> processes_;
  std::unordered_map<uint32_t, ThreadState> threads_;
  std::unordered_map<uint32_t, uint64_t> snapshot_time_ns_;
  size_t processes_seen_ = 0;
  size_t threads_seen_ = 0;
};

}  // namespace sentry_prof::target
