// A recording without a target: the recording thread's parts, fed with events that were kept.
#pragma once

#include "recorder/chunk_finisher.h"
#include "recorder/chunk_sink.h"
#include "recorder/figures.h"
#include "recorder/recording.h"
#include "target/image_store.h"
#include "target/process_table.h"

#include <cstdint>
#include <memory>

namespace sentry_prof::recorder {

// What the recording was told from outside.
struct StoredRunOptions {
  RecordingOptions recording;
  uint64_t begin_ns = 0;  // on the clock of the events
};

class StoredRun final : public sampling::EventSink {
 public:
  // `sink` must outlive the run. LimitExceeded if no second thread can be started.
  static Result<std::unique_ptr<StoredRun>> start(StoredRunOptions options,
                                                  std::unique_ptr<target::ImageOpener> opener,
                                                  ChunkSink& sink);

  // Waits while chunks are written more slowly than they come.
  void on_event(const sampling::Event& event) override;
  void on_time(uint64_t time_ns);
  void on_clock_step(uint64_t time_ns, const profile::ClockAnchor& clock);
  void on_snapshot(const target::ProcessSnapshot& snapshot) { processes_.on_snapshot(snapshot); }
  // Nothing more can be written, and events are fed for nothing.
  bool is_broken() const { return finisher_->sink_is_broken(); }

  // Cuts the last chunk and returns when all are written. No event may follow. `stats`, `setup`: of
  // the sampler that the events came from.
  RunFigures finish(uint64_t end_ns, const sampling::SamplerStats& stats,
                    const sampling::SamplerSetup& setup);

 private:
  void wait_for_room();
  StoredRun(StoredRunOptions options, std::unique_ptr<target::ImageOpener> opener,
            std::unique_ptr<ChunkFinisher> finisher);

  uint64_t begin_ns_;
  uint32_t requested_hz_;
  std::unique_ptr<target::ImageOpener> opener_;
  std::unique_ptr<ChunkFinisher> finisher_;
  target::ImageStore images_;
  target::ProcessTable processes_;
  Recording recording_;
};

}  // namespace sentry_prof::recorder
