// The images of one chunk in the profile's address space, and where its frames lie.
#pragma once

#include "profile/finish_chunk.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace sentry_prof::profile {

class ChunkImages {
 public:
  // Places every image that a frame refers to. Those that no frame lies in afterwards (addresses
  // outside the image) and anonymous memory are not listed.
  ChunkImages(std::span<const FrameKey> frames, const FrameNames& names, ImagePlacer& placer);

  struct Place {
    uint64_t address = 0;              // profile-space
    uint32_t image = Frame::kNoImage;  // index into take()
  };
  // An address that lies in no image of the profile never reads as if it did.
  Place locate(const FrameKey& frame) const;

  // Sorted by image_addr, never overlapping. Once, at the end.
  std::vector<Image> take() { return std::move(listed_); }

 private:
  struct Placed {
    uint64_t address = 0;  // profile-space address of the first PT_LOAD
    uint64_t vmaddr = 0;
    uint64_t size_bytes = 0;
    uint32_t listed = Frame::kNoImage;
  };

  bool lies_in(const Placed& placed, uint64_t pc) const {
    return pc - placed.vmaddr < placed.size_bytes;
  }
  void place(uint32_t image, const ImageFacts& facts, ImagePlacer& placer);
  void list_used(std::span<const FrameKey> frames, const FrameNames& names);
  bool is_in_listed_image(uint64_t address) const;
  uint64_t address_outside_images(uint64_t address) const;

  std::unordered_map<uint32_t, Placed> placed_;
  std::vector<Image> listed_;
};

}  // namespace sentry_prof::profile
