#include "profile/chunk_builder.h"

#include "base/hash.h"
#include "sentry_prof/limits.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::profile {
namespace {

// The longest sample is V1's: 98 bytes with all numbers at their longest.
constexpr uint64_t kSample_bytes = 100;
// {"function":"","instruction_addr":"0xffffffffffffffff","package":"","platform":"native",
// "in_app":false},
constexpr uint64_t kFrame_bytes = 120 + kFrameName_bytes + kImagePath_bytes;
// All members at their longest, with a build id of 64 bytes.
constexpr uint64_t kImage_bytes = 400 + kImagePath_bytes;
// "18446744073709551615":{"name":""},
constexpr uint64_t kThread_bytes = 40 + kThreadName_bytes;
// Everything that is there once.
constexpr uint64_t kRest_bytes = 16 * 1024;

// Stacks of 40 frames at 400 Hz for a minute; more are moved, as in any vector. 4 MiB of address
// space: pages of it take memory once they are written.
constexpr size_t kFrameIndicesAtOnce = 1u << 20;

uint64_t decimal_digits(uint64_t value) {
  uint64_t digits = 1;
  for (; value >= 10; value /= 10) ++digits;
  return digits;
}

bool is_earlier(const RawSample& a, const RawSample& b) { return a.time_ns < b.time_ns; }

}  // namespace

uint64_t RawChunk::samples_with_stack() const {
  uint64_t sum = 0;
  for (const RawThread& t : threads) sum += t.samples_with_stack;
  return sum;
}

namespace {

bool is_short(const RawThread& thread) {
  return thread.samples_with_stack < limits::kMinSamplesPerThread;
}

}  // namespace

uint64_t RawChunk::samples_of_short_threads() const {
  uint64_t sum = 0;
  for (const RawThread& t : threads) sum += is_short(t) ? t.samples_with_stack : 0;
  return sum;
}

bool RawChunk::can_be_valid() const { return !std::ranges::all_of(threads, is_short); }

ChunkBuilder::ChunkBuilder(uint64_t begin_ns)
    : hash_seed_(random_hash_seed()), stack_table_(hash_seed_) {
  begin(begin_ns);
}

void ChunkBuilder::begin(uint64_t begin_ns) {
  chunk_.begin_ns = begin_ns;
  chunk_.stack_frame_indices.reserve(kFrameIndicesAtOnce);
}

uint32_t ChunkBuilder::thread(uint32_t pid, uint32_t tid, uint32_t generation) {
  RawThread wanted;
  wanted.pid = pid;
  wanted.tid = tid;
  wanted.generation = generation;
  const uint64_t hash = hash_of_thread(wanted);
  auto& threads = chunk_.threads;
  const uint32_t found = thread_table_.find(hash, [&](uint32_t i) {
    return threads[i].pid == pid && threads[i].tid == tid && threads[i].generation == generation;
  });
  if (found != IndexTable::kNotFound) return found;
  const auto index = static_cast<uint32_t>(threads.size());
  threads.push_back(std::move(wanted));
  thread_table_.insert(hash, index, [&](uint32_t i) { return hash_of_thread(threads[i]); });
  return index;
}

void ChunkBuilder::name_thread(uint32_t thread, std::string_view name,
                               std::string_view process_name) {
  RawThread& entry = chunk_.threads[thread];
  entry.name = name;
  entry.process_name = process_name;
}

void ChunkBuilder::add_sample(uint64_t time_ns, uint32_t thread, std::span<const FrameKey> frames) {
  find_indices(frames);
  const uint32_t stack = stack_table_.index_of(last_indices_, stacks());
  chunk_.samples.push_back({std::max(time_ns, chunk_.begin_ns), thread, stack});
  if (stack != 0) ++chunk_.threads[thread].samples_with_stack;
}

uint64_t ChunkBuilder::estimated_json_bytes() const {
  const uint64_t index_bytes = decimal_digits(chunk_.frames.size()) + 1;
  return kRest_bytes + chunk_.samples.size() * kSample_bytes + chunk_.frames.size() * kFrame_bytes +
         images_.size() * kImage_bytes + chunk_.stack_frame_indices.size() * index_bytes +
         chunk_.stack_begin.size() * 3 + chunk_.threads.size() * kThread_bytes;
}

RawChunk ChunkBuilder::finish(uint64_t end_ns) {
  RawChunk done = std::exchange(chunk_, {});
  std::stable_sort(done.samples.begin(), done.samples.end(), is_earlier);
  done.end_ns = std::max(end_ns, done.begin_ns);
  if (!done.samples.empty()) done.end_ns = std::max(done.end_ns, done.samples.back().time_ns);
  begin(end_ns);
  frame_table_ = {};
  stack_table_.clear();
  thread_table_ = {};
  images_.clear();
  last_frames_.clear();
  last_indices_.clear();
  return done;
}

// Leaves them in last_indices_.
void ChunkBuilder::find_indices(std::span<const FrameKey> frames) {
  const auto differing =
      std::mismatch(frames.rbegin(), frames.rend(), last_frames_.rbegin(), last_frames_.rend());
  const auto same = differing.first - frames.rbegin();
  const auto inner = frames.first(frames.size() - static_cast<size_t>(same));
  for (const FrameKey& frame : inner) frame_table_.prefetch(hash_of_frame(frame));
  last_indices_.erase(last_indices_.begin(), last_indices_.end() - same);
  last_indices_.insert(last_indices_.begin(), inner.size(), 0);
  std::ranges::transform(inner, last_indices_.begin(),
                         [this](const FrameKey& frame) { return frame_index(frame); });
  last_frames_.assign(frames.begin(), frames.end());
}

uint32_t ChunkBuilder::frame_index(const FrameKey& frame) {
  const uint64_t hash = hash_of_frame(frame);
  auto& frames = chunk_.frames;
  const uint32_t found = frame_table_.find(hash, [&](uint32_t i) { return frames[i] == frame; });
  if (found != IndexTable::kNotFound) return found;
  const auto index = static_cast<uint32_t>(frames.size());
  frames.push_back(frame);
  images_.insert(frame.image);
  frame_table_.insert(hash, index, [&](uint32_t i) { return hash_of_frame(frames[i]); });
  return index;
}

uint64_t ChunkBuilder::hash_of_frame(const FrameKey& frame) const {
  const uint64_t where = (uint64_t{frame.image} << 1) | (frame.is_exact ? 1 : 0);
  return mix_bits((frame.pc ^ hash_seed_) + spread_bits(where));
}

uint64_t ChunkBuilder::hash_of_thread(const RawThread& thread) const {
  return mix_bits(mix_bits((uint64_t{thread.pid} << 32 | thread.tid) ^ hash_seed_) +
                  thread.generation);
}

}  // namespace sentry_prof::profile
