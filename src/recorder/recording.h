// The recording thread's work on events: the target is kept up to date, samples are walked and put
// into the current chunk.
#pragma once

#include "profile/chunk_builder.h"
#include "recorder/anonymous_regions.h"
#include "recorder/chunk_finisher.h"
#include "recorder/figures.h"
#include "recorder/image_catalog.h"
#include "recorder/map_rereads.h"
#include "recorder/sample_walker.h"
#include "recorder/sampled_threads.h"
#include "recorder/session_namer.h"
#include "recorder/waiting_samples.h"
#include "sampling/event.h"
#include "target/process_table.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace sentry_prof::recorder {

// A recording ends some ms behind the time that it was to last, and tenths of a second on a machine
// that is busy, or after an attach to thousands of threads. So that one of some whole chunks leaves
// no rest for another file, the first may be longer. 0 where Sentry would not take that.
uint64_t first_chunk_slack_ns(uint64_t chunk_ns);

struct RecordingOptions {
  uint64_t chunk_ns = 60'000'000'000;
  uint64_t first_chunk_slack_ns = 0;  // by which the first chunk is longer
  uint64_t max_chunk_json_bytes = 0;  // a chunk is cut early before its JSON grows beyond this
  uint32_t frequency_hz = 101;
  uint64_t register_mask = 0;  // SamplerSetup::register_mask
  profile::ClockAnchor clock;  // of the times of events, until on_clock_step()
  // As SessionNamer takes them.
  Session session;
  uint32_t main_pid = 0;
  std::string main_executable;
  // Reads a process's maps again, where its map records may have been lost. May be empty.
  std::function<Result<target::ProcessSnapshot>(uint32_t pid)> reread_process;
  // Reads the rest of stacks that are deeper than their copies, code that no file holds, and what
  // may be a copy of a file's. May be empty.
  ReadMemory read_memory;
  FollowOuterStack follow_outer_stack;  // may be empty
  // Finds what names a process's JIT code. May be empty.
  FindJitMap find_jit_map;
  // May be empty.
  SessionNamer::NameExecutable name_executable;
  // Whether a process has ended of whose end no record told. May be empty: then it is taken to
  // live.
  std::function<bool(uint32_t pid)> is_gone;
  // Tells how old a sample is by then; empty: CLOCK_MONOTONIC.
  std::function<uint64_t()> now_ns;
};

class Recording final : public sampling::EventSink {
 public:
  Recording(RecordingOptions options, target::ProcessTable& processes, target::ImageStore& images,
            ChunkFinisher& finisher, uint64_t begin_ns);

  void on_event(const sampling::Event& event) override;
  // Everything older than `time_ns` has been handed in: cuts a chunk that is due. What is handed in
  // from now on may have been taken after what was read of a process until now.
  void on_time(uint64_t time_ns);
  // The wall clock was set, or the machine slept: what is handed in from now on has the new time,
  // in a chunk that begins at `time_ns`. Everything older than that has been handed in.
  void on_clock_step(uint64_t time_ns, const profile::ClockAnchor& clock);
  // Cuts the last chunk. No event may follow.
  void finish(uint64_t end_ns);

  const SampleFigures& figures() const { return figures_; }
  bool looks_for_jit_maps() const { return static_cast<bool>(options_.find_jit_map); }
  const std::vector<std::string>& jit_map_problems() const { return regions_.problems(); }
  const SampleWalker& walker() const { return walker_; }  // for its figures

 private:
  // A stack as it will stay.
  struct KnownStack {
    unwind::WalkEnd end;
    CompletedBy by;
    std::span<const profile::FrameKey> frames;
  };

  void on_body(uint64_t time_ns, const sampling::SampleEvent& sample);
  void on_body(uint64_t time_ns, const sampling::MapEvent& map);
  void on_body(uint64_t time_ns, const sampling::CommEvent& comm);
  void on_body(uint64_t time_ns, const sampling::ForkEvent& fork);
  void on_body(uint64_t time_ns, const sampling::ExitEvent& exit);
  void on_body(uint64_t time_ns, const sampling::SwitchEvent& change);
  void on_body(uint64_t time_ns, const sampling::LostEvent& lost);
  // Counted by the sampler; nothing to apply.
  void on_body(uint64_t, const sampling::ThrottleEvent&) {}
  void on_body(uint64_t, const sampling::UndecodableEvent&) {}

  bool is_during_exec(const sampling::SampleEvent& sample) const;
  bool wants_image(const unwind::Walk& walk) const;
  void walk_by_more_code(SampleWalk& walked, uint64_t time_ns, const sampling::SampleEvent& sample,
                         const target::Process& process);
  void take(const SampleWalk& walked, uint64_t time_ns, const sampling::SampleEvent& sample,
            const unwind::ModuleMap& modules);
  void put_into_chunk(uint64_t time_ns, uint32_t chunk_thread, const KnownStack& stack);
  void count_completion(CompletedBy by);
  bool reread_maps(const sampling::SampleEvent& sample, uint64_t time_ns);
  uint64_t now_ns() const;
  bool has_code_of(const target::ProcessSnapshot& snapshot,
                   const sampling::SampleEvent& sample) const;
  void collect_frames(const unwind::Walk& walk, uint32_t pid, const unwind::ModuleMap& modules);
  profile::FrameKey key_of(const unwind::WalkedFrame& frame, uint32_t pid,
                           const unwind::ModuleMap& modules);
  // recording_waiting.cpp
  bool defer(uint64_t time_ns, uint32_t pid, uint32_t chunk_thread, const SampleWalk& walked,
             const unwind::ModuleMap& modules);
  void settle_waiting(uint32_t chunk_thread, const unwind::WalkMemory& memory,
                      const unwind::ModuleMap& modules);
  bool go_on_with(WaitingSample& sample, const unwind::WalkMemory& memory,
                  const unwind::ModuleMap& modules);
  void put_cut(const std::vector<WaitingSample>& samples);
  void put_held();

  void cut_chunk_if_due(uint64_t time_ns);
  void begin_chunk(uint64_t begin_ns);
  void cut_large_chunk(uint64_t time_ns);
  void cut_chunk(uint64_t end_ns);
  void hand_on(profile::RawChunk chunk);
  void forget_unused();
  void end_gone_processes(uint64_t time_ns);
  std::vector<uint32_t> gone_processes() const;
  void forget_code(uint32_t pid);
  void forget_process(uint32_t pid);

  RecordingOptions options_;
  target::ProcessTable& processes_;
  target::ImageStore& images_;
  ChunkFinisher& finisher_;
  SampleWalker walker_;
  WaitingSamples waiting_;  // of the current chunk
  profile::ChunkBuilder builder_;
  AnonymousRegions regions_;
  SessionNamer namer_;
  SampleFigures figures_;
  SampledThreads threads_;
  MapRereads rereads_;
  std::unordered_set<uint32_t> execs_;      // pids that have not been seen running since
  std::vector<uint32_t> forgotten_images_;  // since the last chunk that was handed on
  // Who was gone though no record told, and when (monotonic) that was first asked.
  std::unordered_map<uint32_t, uint64_t> gone_before_;
  std::vector<profile::FrameKey> frame_buffer_;
  uint64_t chunk_begin_ns_;
  uint64_t chunk_end_ns_;
  uint32_t samples_until_size_check_ = 0;
  uint64_t changes_since_forgetting_ = 0;  // events, and processes that were dropped
};

}  // namespace sentry_prof::recorder
