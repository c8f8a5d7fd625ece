#include "profile/finish_chunk.h"

#include "base/hash.h"
#include "profile/chunk_images.h"
#include "profile/chunk_threads.h"
#include "profile/frame_text.h"

#include <utility>

namespace sentry_prof::profile {
namespace {

// Frames become what they are in the profile; equal ones become one. Two frames at one address
// may have two names (a call that does not return ends its function: its return address is the
// next function's first instruction): those stay two.
class FrameMerger {
 public:
  explicit FrameMerger(std::vector<Frame>& frames) : frames_(frames) {}

  uint32_t index_of(Frame&& frame) {
    const uint64_t hash = hash_of(frame);
    const uint32_t found =
        table_.find(hash, [&](uint32_t i) { return is_equal(frames_[i], frame); });
    if (found != IndexTable::kNotFound) return found;
    const auto index = static_cast<uint32_t>(frames_.size());
    frames_.push_back(std::move(frame));
    table_.insert(hash, index, [&](uint32_t i) { return hash_of(frames_[i]); });
    return index;
  }

 private:
  // Without the name, which few frames at one address differ in.
  uint64_t hash_of(const Frame& frame) const {
    return mix_bits((frame.instruction_addr ^ hash_seed_) + spread_bits(frame.image));
  }
  static bool is_equal(const Frame& a, const Frame& b) {
    return a.instruction_addr == b.instruction_addr && a.image == b.image &&
           a.function == b.function;
  }

  const uint64_t hash_seed_ = random_hash_seed();
  std::vector<Frame>& frames_;
  IndexTable table_;
};

// The index in profile.frames of each of the chunk's frames.
std::vector<uint32_t> take_frames(const RawChunk& chunk, FrameNames& names,
                                  const ChunkImages& images, Profile& profile) {
  std::vector<FrameText> texts = frame_texts(chunk.frames, names);
  profile.frames.reserve(chunk.frames.size());
  FrameMerger merger(profile.frames);
  std::vector<uint32_t> merged(chunk.frames.size());
  for (size_t i = 0; i < chunk.frames.size(); ++i) {
    const auto place = images.locate(chunk.frames[i]);
    const bool is_compiled = texts[i].is_name && !names.image(chunk.frames[i].image).is_file;
    merged[i] =
        merger.index_of({place.address, std::move(texts[i].text), place.image, is_compiled});
  }
  return merged;
}

// The index in the profile of each of the chunk's stacks; those may be equal now that frames are.
std::vector<uint32_t> take_stacks(RawChunk& chunk, const std::vector<uint32_t>& merged_frames,
                                  Profile& profile) {
  const StackList raw{chunk.stack_frame_indices, chunk.stack_begin};
  for (uint32_t& index : chunk.stack_frame_indices) index = merged_frames[index];
  profile.stack_frame_indices.reserve(chunk.stack_frame_indices.size());
  profile.stack_begin = {0, 0};
  StackTable table(random_hash_seed());
  std::vector<uint32_t> merged(raw.count());
  for (uint32_t i = 0; i < raw.count(); ++i) {
    merged[i] = table.index_of(raw[i], {profile.stack_frame_indices, profile.stack_begin});
  }
  return merged;
}

std::vector<Sample> samples_of(const RawChunk& chunk, const ClockAnchor& clock,
                               const std::vector<uint32_t>& thread_indices,
                               const std::vector<uint32_t>& stack_indices) {
  std::vector<Sample> samples;
  samples.reserve(chunk.samples.size());
  for (const RawSample& s : chunk.samples) {
    samples.push_back(
        {clock.to_unix_ns(s.time_ns), thread_indices[s.thread], stack_indices[s.stack]});
  }
  return samples;
}

}  // namespace

Profile finish_chunk(RawChunk chunk, const Session& session, const ClockAnchor& clock,
                     uint32_t main_pid, FrameNames& names, ImagePlacer& placer) {
  Profile profile;
  profile.session = session;
  profile.start_unix_ns = clock.to_unix_ns(chunk.begin_ns);
  profile.end_unix_ns = clock.to_unix_ns(chunk.end_ns);

  ChunkImages images(chunk.frames, names, placer);
  const std::vector<uint32_t> frame_indices = take_frames(chunk, names, images, profile);
  profile.images = images.take();
  const std::vector<uint32_t> stack_indices = take_stacks(chunk, frame_indices, profile);

  ChunkThreads threads = name_threads(chunk, main_pid);
  profile.samples = samples_of(chunk, clock, threads.index_of_raw, stack_indices);
  profile.threads = std::move(threads.threads);
  profile.main_thread = threads.main_thread;
  return profile;
}

}  // namespace sentry_prof::profile
