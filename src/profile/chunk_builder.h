// Collects the samples of one chunk: frames and stacks are interned, samples kept.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sentry_prof::profile {

// A frame before it has a name and an address in the profile.
struct FrameKey {
  static constexpr uint32_t kNoImage = UINT32_MAX;
  uint32_t image = kNoImage;  // session-wide image number
  bool is_exact = false;      // the leaf, or interrupted by a signal: symbols are looked up at pc itself
  uint64_t pc = 0;            // link address in the image; without an image a runtime address
  bool operator==(const FrameKey&) const = default;
};

struct RawSample {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  uint32_t thread = 0;
  uint32_t stack = 0;    // 0 is the empty stack: idle
};

struct RawThread {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t samples_with_stack = 0;
  std::string name;          // as the kernel gives it: any bytes
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
  // Some thread has at least limits::kMinSamplesPerThread samples with a stack.
  bool can_be_valid() const;
};

class ChunkBuilder {
 public:
  explicit ChunkBuilder(uint64_t begin_ns);

  // Index for (pid, tid, generation), valid in this chunk. `generation` tells apart two threads
  // that had the same tid one after the other.
  uint32_t thread(uint32_t pid, uint32_t tid, uint32_t generation);
  void name_thread(uint32_t thread, std::string_view name, std::string_view process_name);

  // `frames` leaf first; empty is an idle marker. Times may come slightly out of order.
  void add_sample(uint64_t time_ns, uint32_t thread, std::span<const FrameKey> frames);

  uint64_t sample_count() const;
  // An upper estimate of the chunk's size as V2 JSON.
  uint64_t estimated_json_bytes() const;

  // Sorts, closes and hands over the chunk; the builder is empty afterwards and begins at `end_ns`.
  RawChunk finish(uint64_t end_ns);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sentry_prof::profile
