#include "profile/finish_chunk.h"

#include "profile/chunk_images.h"
#include "profile/chunk_threads.h"
#include "profile/frame_text.h"

#include <functional>
#include <unordered_map>

namespace sentry_prof::profile {
namespace {

struct FrameHash {
  uint64_t operator()(const Frame& f) const {
    return mix_bits(f.instruction_addr ^ mix_bits(std::hash<std::string>()(f.function)));
  }
};
struct FrameEqual {
  bool operator()(const Frame& a, const Frame& b) const {
    return a.instruction_addr == b.instruction_addr && a.image == b.image &&
           a.function == b.function;
  }
};

// Frames become what they are in the profile; equal ones become one. Two frames at one address
// may have two names (a call that does not return ends its function: its return address is the
// next function's first instruction): those stay two.
class FrameMerger {
 public:
  explicit FrameMerger(std::vector<Frame>& frames) : frames_(frames) {}

  uint32_t index_of(Frame frame) {
    const auto next = static_cast<uint32_t>(frames_.size());
    const auto [it, is_new] = indices_.try_emplace(std::move(frame), next);
    if (is_new) frames_.push_back(it->first);
    return it->second;
  }

 private:
  std::vector<Frame>& frames_;
  std::unordered_map<Frame, uint32_t, FrameHash, FrameEqual> indices_;
};

void take_frames(const RawChunk& chunk, FrameNames& names, const ChunkImages& images,
                 Profile& profile) {
  const std::vector<std::string> texts = frame_texts(chunk.frames, names);
  FrameMerger merger(profile.frames);
  std::vector<uint32_t> merged(chunk.frames.size());
  for (size_t i = 0; i < chunk.frames.size(); ++i) {
    const auto place = images.locate(chunk.frames[i]);
    merged[i] = merger.index_of({place.address, texts[i], place.image});
  }
  for (uint32_t raw : chunk.stack_frame_indices) {
    profile.stack_frame_indices.push_back(merged[raw]);
  }
}

void take_samples(const RawChunk& chunk, const ClockAnchor& clock,
                  const std::vector<uint32_t>& thread_indices, Profile& profile) {
  profile.samples.reserve(chunk.samples.size());
  for (const RawSample& s : chunk.samples) {
    profile.samples.push_back({clock.to_unix_ns(s.time_ns), thread_indices[s.thread], s.stack});
  }
}

}  // namespace

Profile finish_chunk(RawChunk chunk, const Session& session, const ClockAnchor& clock,
                     uint32_t main_pid, FrameNames& names, ImagePlacer& placer) {
  Profile profile;
  profile.session = session;
  profile.start_unix_ns = clock.to_unix_ns(chunk.begin_ns);
  profile.end_unix_ns = clock.to_unix_ns(chunk.end_ns);

  ChunkImages images(chunk.frames, names, placer);
  profile.stack_frame_indices.reserve(chunk.stack_frame_indices.size());
  take_frames(chunk, names, images, profile);
  profile.images = images.take();
  profile.stack_begin = std::move(chunk.stack_begin);

  const ChunkThreads threads = name_threads(chunk, main_pid);
  take_samples(chunk, clock, threads.index_of_raw, profile);
  profile.threads = threads.threads;
  profile.main_thread = threads.main_thread;
  return profile;
}

}  // namespace sentry_prof::profile
