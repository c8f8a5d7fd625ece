#include "recorder/chunk_finisher.h"

#include "os/priority.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::recorder {

ChunkFinisher::ChunkFinisher(ChunkSink& sink, profile::ClockAnchor clock, int nice)
    : sink_(sink), clock_(clock), thread_([this, nice] {
        os::set_thread_nice(nice);
        run();
      }) {}

ChunkFinisher::~ChunkFinisher() {
  if (thread_.joinable()) finish();
}

bool ChunkFinisher::submit(ChunkJob job) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= kMaxQueued) return false;
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

FinishedFigures ChunkFinisher::finish() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
  sort_hottest();
  return std::move(figures_);
}

void ChunkFinisher::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    ChunkJob job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    process(std::move(job));
  }
}

void ChunkFinisher::process(ChunkJob job) {
  const uint64_t samples = job.chunk.samples_with_stack();
  const uint64_t markers = job.chunk.samples.size() - samples;
  if (!job.chunk.can_be_valid()) {
    ++figures_.chunks_too_small;
    figures_.samples_too_small += samples;
    return;
  }
  SymbolFrameNames names(std::move(job.images));
  const Profile profile = profile::finish_chunk(std::move(job.chunk), job.session, clock_,
                                                job.main_pid, names, placer_);
  count_leaves(profile);
  const auto written = sink_.write(profile, figures_.chunks_written + 1);
  if (!written) {
    figures_.samples_not_written += samples;
    figures_.write_errors.push_back(written.error().message);
    return;
  }
  ++figures_.chunks_written;
  figures_.samples_written += samples;
  figures_.idle_markers_written += markers;
}

void ChunkFinisher::count_leaves(const Profile& profile) {
  std::vector<uint64_t> samples_of_frame(profile.frames.size());
  for (const Sample& sample : profile.samples) {
    const auto stack = profile.stack(sample.stack);
    if (!stack.empty()) ++samples_of_frame[stack.front()];
  }
  for (size_t i = 0; i < samples_of_frame.size(); ++i) {
    if (samples_of_frame[i] == 0) continue;
    const Frame& frame = profile.frames[i];
    std::string file = frame.image == Frame::kNoImage ? "" : profile.images[frame.image].code_file;
    const auto entry = leaves_.find({frame.function, file});
    if (entry != leaves_.end()) {
      entry->second += samples_of_frame[i];
    } else if (leaves_.size() < kMaxHotFunctions) {
      leaves_.emplace(std::pair(frame.function, std::move(file)), samples_of_frame[i]);
    }
  }
}

void ChunkFinisher::sort_hottest() {
  for (const auto& [key, samples] : leaves_) {
    figures_.hottest.push_back({key.first, key.second, samples});
  }
  std::stable_sort(
      figures_.hottest.begin(), figures_.hottest.end(),
      [](const HotFunction& a, const HotFunction& b) { return a.samples > b.samples; });
}

}  // namespace sentry_prof::recorder
