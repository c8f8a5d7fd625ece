#include "recorder/chunk_finisher.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "os/priority.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::recorder {

namespace {

// A function's name, and the index of its image: a chunk has many frames in each function, and
// telling them apart by strings over and over would take a visible share of finishing it.
using LeafFunction = std::pair<std::string_view, uint32_t>;

struct LeafHash {
  size_t operator()(const LeafFunction& leaf) const {
    return std::hash<std::string_view>()(leaf.first) + leaf.second;
  }
};

std::vector<uint64_t> samples_by_leaf(const Profile& profile) {
  std::vector<uint64_t> samples_of_frame(profile.frames.size());
  for (const Sample& sample : profile.samples) {
    const auto stack = profile.stack(sample.stack);
    if (!stack.empty()) ++samples_of_frame[stack.front()];
  }
  return samples_of_frame;
}

// Code of no file that nobody named has no functions that could be told apart: by addresses, one of
// a compiler's (JIT) would take all lines.
std::string_view leaf_name(const Frame& frame) {
  const bool is_nameless = frame.image == Frame::kNoImage && !frame.is_compiled;
  return is_nameless ? std::string_view("[anon]") : frame.function;
}

// Valid as long as the profile's names are.
std::unordered_map<LeafFunction, uint64_t, LeafHash> leaves_of(const Profile& profile) {
  const std::vector<uint64_t> samples_of_frame = samples_by_leaf(profile);
  std::unordered_map<LeafFunction, uint64_t, LeafHash> leaves;
  for (size_t i = 0; i < samples_of_frame.size(); ++i) {
    if (samples_of_frame[i] == 0) continue;
    const Frame& frame = profile.frames[i];
    leaves[{leaf_name(frame), frame.image}] += samples_of_frame[i];
  }
  return leaves;
}

// What fails again, after chunks that were written, in a recording of months.
constexpr uint64_t kTellAgain_ns = 3600 * kNsPerSecond;

// Names of files and sizes differ from chunk to chunk.
std::string without_numbers(std::string_view message) {
  std::string text;
  for (const char c : message) {
    if (c < '0' || c > '9') text += c;
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<ChunkFinisher>> ChunkFinisher::start(ChunkSink& sink,
                                                            const os::ThreadPriority& priority,
                                                            std::function<void()> tidy_up) {
  std::unique_ptr<ChunkFinisher> finisher(new ChunkFinisher(sink, std::move(tidy_up)));
  try {
    finisher->thread_ = std::thread([self = finisher.get(), priority] {
      os::set_thread_priority(priority);
      self->run();
    });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::LimitExceeded,
                fmt::format("no second thread can be started ({}). Raise the limit of processes "
                            "(ulimit -u, TasksMax= of a service) or of memory (ulimit -v)",
                            error.what()));
  }
  return finisher;
}

ChunkFinisher::~ChunkFinisher() {
  if (!thread_.joinable()) return;
  is_finished_within(0);
  thread_.join();
}

bool ChunkFinisher::submit(ChunkJob&& job) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= kMaxQueued) {
      was_dropped_ = true;
      return false;
    }
    queue_.push_back(std::move(job));
  }
  wake_.notify_all();
  return true;
}

bool ChunkFinisher::has_room_within(uint64_t wait_ns) {
  std::unique_lock lock(mutex_);
  return wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                        [this] { return queue_.size() < kMaxQueued; });
}

bool ChunkFinisher::is_finished_within(uint64_t wait_ns) {
  std::unique_lock lock(mutex_);
  is_ending_ = true;
  wake_.notify_all();
  return wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return is_finished_; });
}

FinishedFigures ChunkFinisher::take_figures() {
  thread_.join();
  sort_hottest();
  return std::move(figures_);
}

void ChunkFinisher::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
    if (queue_.empty()) break;
    ChunkJob job = std::move(queue_.front());
    queue_.pop_front();
    wake_.notify_all();
    lock.unlock();
    process(std::move(job));
    if (tidy_up_) tidy_up_();
    lock.lock();
  }
  is_finished_ = true;
  wake_.notify_all();
}

// A disk that is always too slow drops some every few minutes.
void ChunkFinisher::tell_of_drop() {
  const uint64_t now_ns = os::monotonic_ns();
  if (drop_told_at_ns_ != 0 && now_ns - drop_told_at_ns_ < kTellAgain_ns) return;
  drop_told_at_ns_ = now_ns;
  sink_.on_loss("what is recorded is written too slowly: chunks were dropped");
}

void ChunkFinisher::process(ChunkJob job) {
  if (was_dropped_.exchange(false)) tell_of_drop();
  for (const uint32_t image : job.forgotten_images) placer_.forget(image);
  placer_.forget_from(AnonymousRegions::kFirst);
  const uint64_t samples = job.chunk.samples_with_stack();
  const uint64_t markers = job.chunk.samples.size() - samples;
  const uint64_t of_short_threads = job.chunk.samples_of_short_threads();
  if (!job.chunk.can_be_valid()) {
    ++figures_.chunks_too_small;
    figures_.samples_too_small += samples;
    return;
  }
  try {
    if (!write(finish(std::move(job)), samples)) return;
    figures_.samples_of_short_threads += of_short_threads;
    figures_.idle_markers_written += markers;
  } catch (const std::bad_alloc&) {
    figures_.samples_not_written += samples;
    note_error("out of memory while finishing a chunk");
  }
}

// What was read to name the frames is given back before the profile is written.
Profile ChunkFinisher::finish(ChunkJob job) {
  SymbolFrameNames names(std::move(job.images));
  Profile profile = profile::finish_chunk(std::move(job.chunk), job.session, job.clock,
                                          job.main_pid, names, placer_);
  figures_.jit.add_chunk(names.jit());
  const symbols::SymbolBudget& budget = names.symbol_budget();
  figures_.symbol_tables_cut = std::max(figures_.symbol_tables_cut, budget.tables_cut);
  figures_.names_left_mangled = std::max(figures_.names_left_mangled, budget.names_left_mangled);
  return profile;
}

bool ChunkFinisher::write(const Profile& profile, uint64_t samples) {
  const auto written = sink_.write(profile, ++chunks_handed_on_);
  if (!written) {
    figures_.samples_not_written += samples;
    note_error(written.error().message);
    sink_is_broken_ = sink_.is_broken();
    return false;
  }
  is_failing_ = false;
  ++figures_.chunks_written;
  figures_.samples_written += samples;
  count_leaves(profile);
  return true;
}

void ChunkFinisher::note_error(const std::string& message) {
  ++figures_.chunks_not_written;
  const bool begins = !std::exchange(is_failing_, true);
  auto& errors = figures_.write_errors;
  const bool is_known =
      std::ranges::any_of(errors, [&, kind = without_numbers(message)](const std::string& known) {
        return without_numbers(known) == kind;
      });
  const uint64_t now_ns = os::monotonic_ns();
  const bool is_news = begins && now_ns - told_at_ns_ >= kTellAgain_ns;
  if (!is_news && (is_known || errors.size() == kMaxWriteErrors)) return;
  if (!is_known && errors.size() < kMaxWriteErrors) errors.push_back(message);
  told_at_ns_ = now_ns;
  sink_.on_loss(message);
}

void ChunkFinisher::count_leaves(const Profile& profile) {
  for (const auto& [function, samples] : leaves_of(profile)) {
    const auto& [name, image] = function;
    std::pair key(std::string(name),
                  image == Frame::kNoImage ? std::string() : profile.images[image].code_file);
    const auto entry = leaves_.find(key);
    if (entry != leaves_.end()) {
      entry->second += samples;
      continue;
    }
    if (leaves_.size() == kMaxHotFunctions) forget_rare_leaves();
    leaves_.emplace(std::move(key), samples);
  }
}

// Half of them at least, so that they are looked through seldom.
void ChunkFinisher::forget_rare_leaves() {
  std::vector<uint64_t> counts;
  counts.reserve(leaves_.size());
  for (const auto& [key, samples] : leaves_) counts.push_back(samples);
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::ranges::nth_element(counts, middle);
  std::erase_if(leaves_, [least = *middle](const auto& leaf) { return leaf.second <= least; });
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
