#include "recorder/run_figures.h"

#include "os/clock.h"

#include <utility>

namespace sentry_prof::recorder {

void fill_in(RunFigures& figures, const Recording& recording, const target::ImageStore& images,
             const target::ProcessTable& processes, ChunkFinisher& finisher) {
  FinishedFigures finished = finisher.take_figures();
  figures.sample = recording.figures();
  figures.unwinder = recording.walker().unwinder_stats();
  figures.unwind_ns = recording.walker().unwind_ns();
  figures.code_pages_not_read = recording.walker().code_pages_not_read();
  figures.looks_for_jit_maps = recording.looks_for_jit_maps();
  figures.notes.insert(figures.notes.end(), recording.jit_map_problems().begin(),
                       recording.jit_map_problems().end());
  figures.samples_written = finished.samples_written;
  figures.samples_of_short_threads = finished.samples_of_short_threads;
  figures.idle_markers_written = finished.idle_markers_written;
  figures.chunks_written = finished.chunks_written;
  figures.chunks_not_written = finished.chunks_not_written;
  figures.chunks_too_small = finished.chunks_too_small;
  figures.write_errors = std::move(finished.write_errors);
  figures.hottest = std::move(finished.hottest);
  figures.jit = finished.jit;
  figures.symbol_tables_cut = finished.symbol_tables_cut;
  figures.names_left_mangled = finished.names_left_mangled;
  figures.image_problems = images.problems();
  figures.sample.loss(Loss::RingFull) = figures.sampler.lost_samples;
  figures.sample.loss(Loss::Undecodable) = figures.sampler.undecodable_samples;
  figures.sample.loss(Loss::Duplicate) = figures.sampler.duplicate_samples;
  figures.sample.loss(Loss::OutsideProcess) = figures.sampler.outside_samples;
  figures.sample.loss(Loss::ChunkTooSmall) = finished.samples_too_small;
  figures.sample.loss(Loss::ChunkNotWritten) = finished.samples_not_written;
  figures.threads = processes.thread_count();
  figures.processes = processes.process_count();
  figures.state_forgotten = processes.forgotten_count();
  figures.images = images.images_seen();
  figures.images_with_debug_cfi = images.images_with_debug_cfi();
  figures.profiler_cpu_s = os::own_cpu_seconds();
  figures.profiler_peak_rss_bytes = os::own_peak_rss_bytes();
}

}  // namespace sentry_prof::recorder
