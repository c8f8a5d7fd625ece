// Collects the samples of one chunk: frames and stacks are interned, samples kept.
#pragma once

#include "profile/index_table.h"
#include "profile/stack_table.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace sentry_prof::profile {

// What finish_chunk keeps texts within, as they stand in JSON: the names of a chunk's frames on
// average (long C++ names are rare; most are below 100 bytes), each path of an image at most.
inline constexpr uint64_t kFrameName_bytes = 384;
inline constexpr uint64_t kImagePath_bytes = 256;
// Of a thread, in JSON: two kernel names of 15 bytes, each of which may become three (U+FFFD), and
// a process number. perf.data may hold longer ones.
inline constexpr uint64_t kThreadName_bytes = 120;

// A frame before it has a name and an address in the profile.
struct FrameKey {
  static constexpr uint32_t kNoImage = UINT32_MAX;
  uint32_t image = kNoImage;  // of the chunk's images and of its regions without a file
  bool is_exact =
      false;        // the leaf, or interrupted by a signal: symbols are looked up at pc itself
  uint64_t pc = 0;  // link address in the image; without an image a runtime address
  bool operator==(const FrameKey&) const = default;
};

struct RawSample {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  uint32_t thread = 0;
  uint32_t stack = 0;  // 0 is the empty stack: idle
};

struct RawThread {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t generation = 0;
  uint32_t samples_with_stack = 0;
  std::string name;  // as the kernel gives it: any bytes
  std::string process_name;
};

// What one chunk holds before symbols and placement. Movable to another thread.
struct RawChunk {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  std::vector<FrameKey> frames;
  std::vector<uint32_t> stack_frame_indices;
  std::vector<uint32_t> stack_begin = {0, 0};  // stack 0 is empty
  std::vector<RawSample> samples;              // sorted by time once finished
  std::vector<RawThread> threads;

  uint64_t samples_with_stack() const;
  // Of threads with fewer than limits::kMinSamplesPerThread of them, which the server drops.
  uint64_t samples_of_short_threads() const;
  // Some thread has at least as many.
  bool can_be_valid() const;
};

// Memory grows with the chunk (see estimated_json_bytes); in the steady state, where frames and
// stacks repeat, a sample allocates nothing but its place in the list of samples.
class ChunkBuilder {
 public:
  explicit ChunkBuilder(uint64_t begin_ns);

  // Index for (pid, tid, generation), valid in this chunk. `generation` counts the threads that had
  // this tid before, in the whole session and whatever their process.
  uint32_t thread(uint32_t pid, uint32_t tid, uint32_t generation);
  // The last name given is the one that stays.
  void name_thread(uint32_t thread, std::string_view name, std::string_view process_name);

  // `frames` leaf first; empty is an idle marker. Times may come slightly out of order; a time
  // before the chunk's begin counts as the begin.
  void add_sample(uint64_t time_ns, uint32_t thread, std::span<const FrameKey> frames);

  // An upper estimate of the chunk's size as V1 or V2 JSON: finish_chunk keeps names and paths
  // within kFrameName_bytes and kImagePath_bytes.
  uint64_t estimated_json_bytes() const;

  // Sorts, closes and hands over the chunk; the builder is empty afterwards and begins at `end_ns`.
  RawChunk finish(uint64_t end_ns);

 private:
  void begin(uint64_t begin_ns);
  void find_indices(std::span<const FrameKey> frames);
  uint32_t frame_index(const FrameKey& frame);
  StackList stacks() { return {chunk_.stack_frame_indices, chunk_.stack_begin}; }
  uint64_t hash_of_frame(const FrameKey& frame) const;
  uint64_t hash_of_thread(const RawThread& thread) const;

  uint64_t hash_seed_;
  RawChunk chunk_;
  IndexTable frame_table_;
  StackTable stack_table_;
  IndexTable thread_table_;
  std::unordered_set<uint32_t> images_;
  // Of the last sample: the next one's outer frames are mostly the same.
  std::vector<FrameKey> last_frames_;
  std::vector<uint32_t> last_indices_;
};

}  // namespace sentry_prof::profile
