// The one loop of a recording: waits, drains the rings, cuts chunks, notices the end.
#pragma once

#include "os/fd.h"
#include "os/signals.h"
#include "recorder/chunk_sink.h"
#include "recorder/figures.h"
#include "recorder/recording.h"
#include "sampling/sampler.h"
#include "target/launch.h"
#include "target/proc.h"
#include "target/process_table.h"

#include <functional>
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
  Session session;
  std::string main_executable;
};

enum class StopReason : uint8_t { TargetEnded, DurationOver, Signal };

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
};

class Recorder {
 public:
  Recorder(RecorderOptions options, sampling::Sampler& sampler, const os::SignalSet& signals,
           ChunkSink& sink, std::function<void(const Progress&)> show_progress);

  // Records running processes until they end, a signal comes or the time is over. Gone,
  // PermissionDenied and so on only if nothing could be attached to.
  Result<RunResult> attach(std::span<const int> pids);
  // Records a command from its exec to its end. `child` has not been released yet. SIGINT is the
  // command's business (the terminal sends it to both), other signals are passed on to it; a second
  // one ends the recording. A command that outlives the duration goes on undisturbed.
  // NotFound / PermissionDenied with the errno in `exec_errno` if its exec failed.
  // The child is not waited for: its status is the caller's to take.
  Result<RunResult> launch(target::LaunchedChild& child, int& exec_errno);

 private:
  struct Target {
    std::unique_ptr<target::ImageOpener> opener = target::make_proc_opener();
    target::ImageStore images{*opener};
    target::ProcessTable processes{images};
  };
  struct Ends {               // what ends the loop, besides time and signals
    std::vector<int> pidfds;  // all of these readable
    target::LaunchedChild* child = nullptr;
  };

  RunResult run(Target& target, uint32_t main_pid, Ends ends, int normal_nice);
  void loop(Recording& recording, const Target& target, const Ends& ends, RunResult& result);
  void wait_for_events(const Ends& ends, uint64_t deadline_ns) const;
  bool is_time_to_stop(const Ends& ends, uint64_t deadline_ns, RunResult& result);
  void fill_in(RunFigures& figures, const Recording& recording, FinishedFigures finished,
               const Target& target) const;

  RecorderOptions options_;
  sampling::Sampler& sampler_;
  const os::SignalSet& signals_;
  ChunkSink& sink_;
  std::function<void(const Progress&)> show_progress_;
  uint64_t begin_ns_ = 0;
  unsigned interrupts_ = 0;  // signals that were left to the launched command
};

}  // namespace sentry_prof::recorder
