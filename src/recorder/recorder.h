// The one loop of a recording: waits, drains the rings, cuts chunks, notices the end.
#pragma once

#include "os/clock.h"
#include "os/fd.h"
#include "os/priority.h"
#include "os/process_memory.h"
#include "os/signals.h"
#include "recorder/chunk_sink.h"
#include "recorder/figures.h"
#include "recorder/raw_log_writer.h"
#include "recorder/recording.h"
#include "recorder/signal_policy.h"
#include "recorder/wall_clock.h"
#include "sampling/sampler.h"
#include "target/launch.h"
#include "target/proc.h"
#include "target/process_table.h"
#include "target/target_files.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sentry_prof::recorder {

struct RecorderOptions {
  std::optional<double> duration_s;
  uint64_t chunk_ns = 60'000'000'000;
  uint64_t max_chunk_json_bytes = 0;
  uint32_t frequency_hz = 101;
  bool follows_children = true;  // as the sampler does; so those that are there already are told of
  Session session;
  std::string main_executable;
  RawLogWriter* raw_log = nullptr;             // null: none is kept; also the sampler's tap
  std::shared_ptr<target::TargetFiles> files;  // not null
};

enum class StopReason : uint8_t { TargetEnded, DurationOver, Signal, OutputBroken };

// What the live line shows.
struct Progress {
  double elapsed_s = 0;
  uint64_t samples = 0;
  uint64_t lost = 0;
  size_t threads = 0;
};

struct RunResult {
  RunFigures figures;
  StopReason reason = StopReason::TargetEnded;
  int signal = 0;  // with StopReason::Signal
  // By a signal, be it that a launched command got it and ended within seconds.
  bool was_end_asked_for = false;
};

class Recorder {
 public:
  Recorder(RecorderOptions options, sampling::Sampler& sampler, const os::SignalSet& signals,
           ChunkSink& sink, std::function<void(const Progress&)> show_progress);

  // Records running processes until they end, a signal comes or the time is over. Gone,
  // PermissionDenied and so on only if nothing could be attached to.
  Result<RunResult> attach(std::span<const int> pids);
  // Records a command from its exec to its end. `child` has not been released yet. A command that
  // outlives the recording goes on undisturbed.
  // NotFound / PermissionDenied with the errno in `exec_errno` if its exec failed. Gone if a signal
  // ended it before.
  // The child is not waited for: its status is the caller's to take.
  Result<RunResult> launch(target::LaunchedChild& child, int& exec_errno);
  // Waits for a command that was launched, passing signals on to it: its wait status.
  Result<int> wait_for_end_of(target::LaunchedChild& child);
  // Meanwhile, if something else is to be waited for: what is the command's only.
  void pass_signals_through() const { signals_.pass_through(); }
  bool is_interrupted_at_terminal() const { return signals_.is_interrupted_at_terminal(); }

 private:
  // What one run needs, in the order in which it is taken down.
  struct Run {
    explicit Run(std::unique_ptr<target::ImageOpener> files) : opener(std::move(files)) {}

    os::RaisedPriority priority;
    std::unique_ptr<target::ImageOpener> opener;
    target::ImageStore images{*opener, {}, os::monotonic_ns};
    target::ProcessTable processes{images};
    std::unique_ptr<ChunkFinisher> finisher;
    std::vector<int> attached_pids;
    std::vector<os::Fd> own_pidfds;  // of these, in their order
    std::vector<int> pidfds;         // of the targets; when all are readable the run is over
    std::vector<std::string> notes;  // for RunFigures::notes
    int launched_pid = -1;           // the command's, if there is one
  };

  Result<std::unique_ptr<Run>> prepare();
  static Result<std::vector<int>> hold_living(std::span<const int> pids, Run& run);
  static Result<os::Fd> hold(int pid, std::span<const int> pids);
  RecordingOptions recording_options(uint32_t main_pid, os::ProcessMemoryReader& memory) const;
  void wait_for_room(ChunkFinisher& finisher);
  RunResult record(Run& run, uint32_t main_pid);
  static std::vector<int> living_pids(const Run& run);
  void follow_wall_clock(Recording& recording, uint64_t time_ns);
  uint64_t end_of(double duration_s) const;
  StopReason loop(Recording& recording, const Run& run);
  void wait_for_events(const Run& run, uint64_t deadline_ns, uint64_t interval_ns) const;
  std::optional<StopReason> reason_to_stop(const Run& run, uint64_t deadline_ns);
  std::unique_ptr<target::ImageOpener> make_opener() const;
  void log_session(uint32_t main_pid) const;

  RecorderOptions options_;
  sampling::Sampler& sampler_;
  const os::SignalSet& signal_set_;
  SignalPolicy signals_;
  ChunkSink& sink_;
  std::function<void(const Progress&)> show_progress_;
  WallClock wall_clock_;
  uint64_t begin_ns_ = 0;
};

}  // namespace sentry_prof::recorder
