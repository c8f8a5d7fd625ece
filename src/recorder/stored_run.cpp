#include "recorder/stored_run.h"

#include "recorder/run_figures.h"

#include <utility>

namespace sentry_prof::recorder {

namespace {

constexpr uint64_t kWait_ns = 100'000'000;

}  // namespace

Result<std::unique_ptr<StoredRun>> StoredRun::start(StoredRunOptions options,
                                                    std::unique_ptr<target::ImageOpener> opener,
                                                    ChunkSink& sink) {
  auto finisher = ChunkFinisher::start(sink, os::thread_priority());
  if (!finisher) return tl::unexpected(finisher.error());
  return std::unique_ptr<StoredRun>(
      new StoredRun(std::move(options), std::move(opener), std::move(*finisher)));
}

StoredRun::StoredRun(StoredRunOptions options, std::unique_ptr<target::ImageOpener> opener,
                     std::unique_ptr<ChunkFinisher> finisher)
    : begin_ns_(options.begin_ns),
      requested_hz_(options.recording.frequency_hz),
      opener_(std::move(opener)),
      finisher_(std::move(finisher)),
      images_(*opener_),
      processes_(images_),
      recording_(std::move(options.recording), processes_, images_, *finisher_, begin_ns_) {}

void StoredRun::wait_for_room() {
  while (!finisher_->has_room_within(kWait_ns)) continue;
}

void StoredRun::on_event(const sampling::Event& event) {
  wait_for_room();
  recording_.on_event(event);
}

void StoredRun::on_time(uint64_t time_ns) {
  wait_for_room();
  recording_.on_time(time_ns);
}

void StoredRun::on_clock_step(uint64_t time_ns, const profile::ClockAnchor& clock) {
  wait_for_room();
  recording_.on_clock_step(time_ns, clock);
}

RunFigures StoredRun::finish(uint64_t end_ns, const sampling::SamplerStats& stats,
                             const sampling::SamplerSetup& setup) {
  wait_for_room();
  recording_.finish(end_ns);
  while (!finisher_->is_finished_within(kWait_ns)) continue;
  RunFigures figures;
  figures.sampler = stats;
  figures.setup = setup;
  figures.requested_hz = requested_hz_;
  fill_in(figures, recording_, images_, processes_, *finisher_);
  figures.duration_s = static_cast<double>(end_ns - begin_ns_) / 1e9;
  return figures;
}

}  // namespace sentry_prof::recorder
