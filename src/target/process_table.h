// Processes, their threads and address spaces, kept up to date by side-band events. Pure.
#pragma once

#include "target/image_store.h"
#include "unwind/module_map.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace sentry_prof::target {

struct Process {
  uint32_t pid = 0;
  std::string name;  // comm of the main thread
  unwind::ModuleMap modules;
  // What memory without an image is, or part of it, if it proves to be a copy of an image's code:
  // programs copy their own, in its place, to have it in huge pages. Then it is still the image's,
  // unwind tables, names and all. Only its bytes can tell.
  unwind::ModuleMap possible_code;
  // When these were last known to be all that it has, by a snapshot or an exec, be it its parent's;
  // since then it is what records told. 0: never.
  uint64_t modules_known_at_ns = 0;
  bool has_exited = false;
};

struct ThreadState {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t generation = 0;  // counts reuses of the tid in this session
  std::string name;         // comm
};

// What was read of a running process from /proc: when the session attached to it, or again since
// then where records were lost.
struct ProcessSnapshot {
  uint32_t pid = 0;
  std::string name;
  std::vector<std::pair<uint32_t, std::string>> threads;  // tid, comm
  std::vector<MappingFacts> mappings;                     // executable ones
  std::vector<MappingFacts> data_below_code;              // parse_data_below_code()
  uint64_t taken_at_ns = 0;  // CLOCK_MONOTONIC before reading: older map events are skipped
};

// The state of ended processes and threads is kept for a while, because samples may come slightly
// after the exit record; then it is dropped, so that a program that forks or starts threads for
// hours takes no more memory than one that does not.
class ProcessTable {
 public:
  // How much of the past is kept. Records come out of order by milliseconds, no machine ends so
  // many in that time.
  static constexpr size_t kMaxExitedProcesses = 512;
  static constexpr size_t kMaxExitedModules = 100'000;  // 4 MiB
  static constexpr size_t kMaxExitedThreads = 4'096;
  // Executable mappings of a process: browsers and JITs have some hundreds, .NET thousands. Records
  // tell of no munmap, so that more may pile up; mappings without an image are then forgotten.
  static constexpr size_t kMaxModules = 16'384;
  // Of a process, which has one or two for each library whose code it copies (what takes a copy's
  // place counts as well). With more all are forgotten, and counted.
  static constexpr size_t kMaxPossibleCode = 128;
  // Of all processes, also such as never ended that we know of: 48 MiB. A process that would need
  // more than is left has to do without mappings that have no image, or without any.
  static constexpr size_t kMaxKeptModules = 1'000'000;
  // That a child gets of its parent, which has more only where a JIT compiler maps much or where
  // somebody wants forks to be dear: without those that have no image, or without any.
  static constexpr size_t kMaxForkedModules = 2'048;
  // As many as a machine may have at a time (kernel.pid_max is 4 Mi at most, but each takes it some
  // 10 KiB); exits whose records were lost would add up. Those that nothing was heard of for the
  // longest time are forgotten then.
  static constexpr size_t kMaxProcesses = 131'072;
  static constexpr size_t kMaxThreads = 262'144;

  explicit ProcessTable(ImageStore& images) : images_(images) {}

  // Records older than a snapshot of their process are skipped where the snapshot knows better.
  void on_snapshot(const ProcessSnapshot& snapshot);
  void on_map(uint64_t time_ns, const MappingFacts& mapping);
  void on_comm(uint32_t pid, uint32_t tid, std::string_view name, bool is_exec, uint64_t time_ns);
  void on_fork(uint32_t pid, uint32_t tid, uint32_t parent_pid, uint32_t parent_tid,
               uint64_t time_ns);
  void on_exit(uint32_t pid, uint32_t tid);
  // As if records had told of the ends of all its threads.
  void on_process_gone(uint32_t pid);

  // One of the process's possible_code was proven: it is a module like any other from now on.
  void on_proven_code(uint32_t pid, const unwind::Module& code);

  // Unknown pids and tids are created empty: their records were lost, or come later.
  // The references hold until the process or thread ends, or begins anew (on_exit(), on_fork(),
  // on_process_gone(), drop_long_ended()), or kMaxProcesses or kMaxThreads others take its place.
  // Its maps change in place: on_map(), on_snapshot(), on_proven_code(), and on_comm() of an exec.
  Process& process(uint32_t pid) { return process_entry(pid).process; }
  ThreadState& thread(uint32_t pid, uint32_t tid) { return thread_entry(pid, tid).state; }

  // Drops what is kept of processes that had ended already when this was called before.
  void drop_long_ended();
  // Of all processes, also such as have ended.
  std::unordered_set<unwind::ImageId> mapped_images() const;
  // Of which no end was told, by pid.
  std::vector<uint32_t> living_processes() const;
  // With those of which no thread is known: of some all other records were lost.
  std::vector<uint32_t> processes_without_end() const;

  size_t process_count() const { return processes_seen_; }  // all that were ever seen
  size_t thread_count() const { return threads_seen_; }     // all that were ever seen
  size_t kept_process_count() const { return processes_.size(); }
  size_t kept_thread_count() const { return threads_.size(); }
  size_t kept_module_count() const { return kept_modules_; }
  // How often a living process or thread, or mappings of one, had to be forgotten for its number.
  size_t forgotten_count() const { return forgotten_; }

 private:
  struct ProcessEntry {
    Process process;
    uint64_t snapshot_time_ns = 0;  // of the last snapshot; 0: none
    uint64_t exit_serial = 0;       // number of its exit in this session; 0: lives
    uint64_t last_use = 0;          // its number among all uses of processes and threads
    std::unordered_set<uint32_t> living_tids;
  };
  struct ThreadEntry {
    ThreadState state;
    uint64_t exit_serial = 0;
    uint64_t last_use = 0;
  };
  struct Exited {
    uint32_t id = 0;  // pid or tid
    uint64_t serial = 0;
    size_t modules = 0;
  };

  ProcessEntry& process_entry(uint32_t pid);
  ThreadEntry& thread_entry(uint32_t pid, uint32_t tid);
  ThreadEntry& living_thread(uint32_t pid, uint32_t tid);
  ThreadEntry& new_life(uint32_t pid, uint32_t tid);
  void begin_process(ProcessEntry& entry);
  void end_thread(uint32_t tid);
  void end_process(ProcessEntry& entry);
  void end_other_threads(ProcessEntry& entry, uint32_t survivor_tid);
  void insert(Process& process, const MappingFacts& mapping);
  void note_possible_code(Process& process, const unwind::Module& module);
  void note_code_above(Process& process, const MappingFacts& data);
  void keep_possible_code_bounded(unwind::ModuleMap& known);
  std::optional<unwind::Module> possible_code(const Process& process,
                                              const unwind::Module& module) const;
  void copy_modules(const Process& parent, Process& child);
  void set_modules(Process& process, unwind::ModuleMap modules);
  void forget_unused_processes();
  void forget_unused_threads();
  void drop_oldest_processes();
  void drop_oldest_process();
  void drop_oldest_threads();

  ImageStore& images_;
  std::unordered_map<uint32_t, ProcessEntry> processes_;  // by pid
  std::unordered_map<uint32_t, ThreadEntry> threads_;     // by tid
  std::deque<Exited> exited_processes_;                   // oldest first; some live again
  std::deque<Exited> exited_threads_;
  size_t exited_modules_ = 0;
  size_t kept_modules_ = 0;
  size_t forgotten_ = 0;
  uint64_t uses_ = 0;
  uint64_t exits_ = 0;
  uint64_t exits_before_ = 0;  // when drop_long_ended() was called
  // Generation of a tid that is not known: above that of any thread whose state was dropped.
  uint32_t first_generation_ = 0;
  size_t processes_seen_ = 0;
  size_t threads_seen_ = 0;
};

}  // namespace sentry_prof::target
