// RawChunk -> Profile: names, placement, wall-clock times.
#pragma once

#include "profile/chunk_builder.h"
#include "sentry_prof/profile.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sentry_prof::profile {

// A pair of readings anchors CLOCK_MONOTONIC to the wall clock. What lies before 1970, or beyond
// what 64 bits hold, becomes that limit.
struct ClockAnchor {
  uint64_t monotonic_ns = 0;
  uint64_t unix_ns = 0;
  uint64_t to_unix_ns(uint64_t monotonic) const {
    if (monotonic < monotonic_ns) return unix_ns - std::min(unix_ns, monotonic_ns - monotonic);
    return unix_ns + std::min(UINT64_MAX - unix_ns, monotonic - monotonic_ns);
  }
};

// Gives each image its one range in the profile's address space, until it is forgotten.
class ImagePlacer {
 public:
  // No ELF file that can run comes near; a bogus larger size is cut to this, so that the address
  // space cannot run out.
  static constexpr uint64_t kMaxPlaced_bytes = uint64_t{1} << 40;

  // The address of `image`: `preferred` if the pages of [preferred, preferred + size) are free,
  // else the next free range above it (if there is none, or not before hundreds of others: from the
  // bottom), at the same offset in its page. The same answer every time for the same image; other
  // images never get any of its pages, and no image gets an address with bit 63.
  uint64_t place(uint32_t image, uint64_t preferred, uint64_t size_bytes);
  // Its range is free again. Nothing if it has none.
  void forget(uint32_t image);
  // The same of all with this number or a higher one.
  void forget_from(uint32_t first);

 private:
  struct Placed {
    uint64_t address = 0;
    uint64_t range_begin = 0;
  };

  uint64_t free_range_elsewhere(uint64_t size);

  std::map<uint64_t, uint64_t> taken_;  // begin -> end
  std::map<uint32_t, Placed> placed_;
  uint64_t elsewhere_ = 0;  // where a range that is not near its preferred place is sought
};

// What the finisher must know of an image that a chunk's frames refer to.
struct ImageFacts {
  Image image;                   // image_addr is filled in by finish_chunk
  uint64_t first_seen_addr = 0;  // runtime address of its first PT_LOAD where it was first mapped
  bool is_file = true;           // false: anonymous memory that only needs a place, no debug image
};

struct FrameName {
  std::string text;  // of the function; "" where none is known
  // Link address at which the function begins, if no name but that is known.
  std::optional<uint64_t> function_start;
};

// Names are given from outside, so that this stays free of files.
class FrameNames {
 public:
  virtual ~FrameNames() = default;
  // Facts of a frame's image (FrameKey::image).
  virtual const ImageFacts& image(uint32_t image) const = 0;
  // One for each frame of the chunk.
  virtual std::vector<FrameName> names_of(std::span<const FrameKey> frames) = 0;
};

// Frames without a name become `libfoo.so+0x1234` (offset from the first PT_LOAD: of the function's
// begin where that is known, else of the pc), `[anon]+0x1234` or `0x1234`. Frames with equal
// address, image and name are one frame, and stacks of equal frames one stack. Addresses that lie
// in no image of the profile but would read as if they did get bit 63. Threads of processes other
// than `main_pid` carry their process in the name. Names and paths become printable UTF-8 of
// bounded length (U+FFFD for bad bytes and control characters). The thread to show first: the main
// thread of `main_pid` if it has enough samples (two, and a tenth of the busiest thread's), else
// the one with the most.
Profile finish_chunk(RawChunk chunk, const Session& session, const ClockAnchor& clock,
                     uint32_t main_pid, FrameNames& names, ImagePlacer& placer);

}  // namespace sentry_prof::profile
