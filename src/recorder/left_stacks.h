// The callers of C code that Go calls: they stand on the goroutine's stack, which is not the one
// that was copied.
#pragma once

#include "base/per_second.h"
#include "profile/chunk_builder.h"
#include "recorder/read_memory.h"
#include "unwind/walk.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace sentry_prof::recorder {

// A goroutine's stack is read after the sample, mostly when the sampled call has returned: what is
// found may be a later call, by others. So a sample's callers are believed only if its stack is
// then left at the same place, and if those of the same C function there were the same so often,
// one look after the other. Where they changed once, as looks or the kernel's chain of frame
// pointers have it, it takes so many more that a mixture is hardly ever believed. Of calls of which
// a share p has other callers, and is met by looks as often as by samples, p * (1 - p)^64 * (1 + 64
// p) are taken for the others', at most 1.3 %.
inline constexpr uint32_t kTimesAlike = 8;
inline constexpr uint32_t kTimesAlikeAgain = 64;
// What samples may take that wait for their stacks to be known, and what is kept of such stacks.
inline constexpr size_t kMaxHeld_bytes = 4u << 20;
inline constexpr size_t kMaxLeftStacks = 1024;  // of at most 12 KiB each
// A look is a turn of another thread, some 10 us, and a walk of 10 to 100 frames.
inline constexpr uint32_t kMaxLooksPerSecond = 1000;
// Deeper goroutines are not followed.
inline constexpr size_t kMaxLeftStack_bytes = 256u << 10;
inline constexpr size_t kMaxLeftFrames = 512;

// Where a stack was left: a goroutine's, and how deep in it.
struct LeftPlace {
  uint32_t pid = 0;
  uint64_t map_version = 0;  // ModuleMap::version()
  unwind::LeftStack left;
};

struct HeldSample {
  uint64_t time_ns = 0;
  uint32_t chunk_thread = 0;
  LeftPlace place;
  std::vector<profile::FrameKey> frames;
};

struct WholeWalk {
  unwind::Walk walk;
  // The stack was left at the same place after the sample: if `walk` has no callers, they may yet
  // be believed.
  std::optional<LeftPlace> seen_at;
};

class LeftStacks {
 public:
  // `read` may be empty: then nothing is known.
  LeftStacks(unwind::Unwinder& unwinder, ReadMemory read)
      : unwinder_(unwinder), read_(std::move(read)) {}

  // For the unwinder's last walk, which left a stack: the same with the frames of that, if they can
  // be believed. Looks at the stack if it has not been looked at since the sample was taken. Valid
  // until the next call.
  WholeWalk complete(const unwind::Walk& walk, uint32_t pid, uint64_t time_ns,
                     const unwind::ModuleMap& modules);
  // What the kernel's chain of frame pointers tells of a stack that was left: `whole` has its
  // frames behind the first `copied_frames`.
  void learn(const unwind::Walk& whole, size_t copied_frames, uint32_t pid, uint64_t time_ns,
             const unwind::ModuleMap& modules);

  // The frames at a place at that time, innermost first, as known by now; none if they cannot be
  // believed.
  std::span<const unwind::WalkedFrame> believed_at(const LeftPlace& place, uint64_t time_ns) const;

  // Keeps a sample until its place may be known. False if there is no room.
  bool hold(HeldSample sample);
  size_t held_bytes() const { return held_bytes_; }
  // All that are held; none is any more.
  std::vector<HeldSample> take_held();

 private:
  // The pid, the frame pointer where the stack was left, and what was called.
  using Key = std::tuple<uint32_t, uint64_t, uint64_t>;
  struct Known {
    uint64_t map_version = 0;
    uint64_t last_look_ns = 0;
    bool is_seen = false;  // a call was there, perhaps of another function
    uint32_t times_alike = 0;
    uint64_t alike_since_ns = 0;  // 0: since ever
    std::vector<unwind::WalkedFrame> frames;

    void hear_of(std::span<const unwind::WalkedFrame> callers, uint64_t time_ns);
  };

  static Key key_of(const LeftPlace& place);
  Known& known_at(const LeftPlace& place);
  bool look_at(const LeftPlace& place, uint64_t time_ns, const unwind::ModuleMap& modules);
  unwind::LeftStackWalk walk_now(const LeftPlace& place, uint64_t time_ns,
                                 const unwind::ModuleMap& modules, uint64_t& read_time_ns);

  unwind::Unwinder& unwinder_;
  ReadMemory read_;
  std::map<Key, Known> known_;
  std::vector<std::byte> buffer_;
  std::vector<unwind::WalkedFrame> frames_;
  std::vector<HeldSample> held_;
  size_t held_bytes_ = 0;
  PerSecond looks_{kMaxLooksPerSecond};
};

}  // namespace sentry_prof::recorder
