// The callers of C code that Go calls: they stand on the goroutine's stack, which is not the one
// that was copied.
#pragma once

#include "profile/chunk_builder.h"
#include "recorder/read_memory.h"
#include "unwind/walk.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace sentry_prof::recorder {

// Who calls a C function from Go is seen now and then: where the C code has not touched the frame
// pointer, so that the kernel's chain has it, and when the goroutine's stack is read, mostly after
// the call has returned; what is seen there is a call of the same function at the same depth, but
// perhaps a later one. So the callers are believed where they have been the same so often. Where
// others were seen once, it takes so many more, one after the other, that what is mixed is hardly
// ever believed: of calls of which a share p has other callers, p * (1 - p)^64 are taken for the
// others', at most 0.6 %.
inline constexpr uint32_t kTimesAlike = 8;
inline constexpr uint32_t kTimesAlikeAgain = 64;
// The same depth, whichever goroutine: all stacks end at a multiple of this (_StackMin in Go's
// runtime/stack.go, their smallest size). Depths that differ by multiples of it are told apart by
// their frames, and count as others.
inline constexpr uint64_t kGoStackAlignment_bytes = 2048;
// What samples may take that wait for their stacks to be known, and what is kept of such stacks.
inline constexpr size_t kMaxHeld_bytes = 4u << 20;
inline constexpr size_t kMaxLeftStacks = 1024;
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

class LeftStacks {
 public:
  // `read` may be empty: then nothing is known.
  LeftStacks(unwind::Unwinder& unwinder, ReadMemory read)
      : unwinder_(unwinder), read_(std::move(read)) {}

  // For the unwinder's last walk, which left a stack: the same with the frames of that, if they can
  // be believed. Looks at the stack if it has not been looked at since the sample was taken. Valid
  // until the next call.
  unwind::Walk complete(const unwind::Walk& walk, uint32_t pid, uint64_t time_ns,
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
  // All that are held; none is any more.
  std::vector<HeldSample> take_held();

 private:
  // The pid, how deep in its stack the goroutine was, and what it called.
  using Key = std::tuple<uint32_t, uint64_t, uint64_t>;
  struct Known {
    uint64_t map_version = 0;
    uint64_t last_look_ns = 0;
    uint32_t times_alike = 0;
    uint64_t alike_since_ns = 0;  // 0: since ever
    std::vector<unwind::WalkedFrame> frames;

    void see(std::span<const unwind::WalkedFrame> seen, uint64_t time_ns);
  };

  static Key key_of(const LeftPlace& place);
  Known& known_at(const LeftPlace& place);
  void look(const LeftPlace& place, uint64_t time_ns, const unwind::ModuleMap& modules);
  std::span<const unwind::WalkedFrame> walk_now(const LeftPlace& place, uint64_t time_ns,
                                                const unwind::ModuleMap& modules,
                                                uint64_t& read_time_ns);
  bool may_look(uint64_t time_ns);

  unwind::Unwinder& unwinder_;
  ReadMemory read_;
  std::map<Key, Known> known_;
  std::vector<std::byte> buffer_;
  std::vector<unwind::WalkedFrame> frames_;
  std::vector<HeldSample> held_;
  size_t held_bytes_ = 0;
  uint64_t second_begin_ns_ = 0;
  uint32_t looks_in_second_ = 0;
};

}  // namespace sentry_prof::recorder
