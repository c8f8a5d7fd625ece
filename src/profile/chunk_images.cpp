#include "profile/chunk_images.h"

#include "profile/bounded_text.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace sentry_prof::profile {
namespace {

// No user address of x86-64 or aarch64 has this bit, and no placed image.
constexpr uint64_t kOutside = uint64_t{1} << 63;

}  // namespace

ChunkImages::ChunkImages(std::span<const FrameKey> frames, const FrameNames& names,
                         ImagePlacer& placer) {
  for (const FrameKey& frame : frames) {
    if (frame.image == FrameKey::kNoImage || placed_.contains(frame.image)) continue;
    place(frame.image, names.image(frame.image), placer);
  }
  list_used(frames, names);
}

void ChunkImages::place(uint32_t image, const ImageFacts& facts, ImagePlacer& placer) {
  Placed placed;
  placed.vmaddr = facts.image.image_vmaddr;
  placed.size_bytes = std::min(facts.image.image_size, ImagePlacer::kMaxPlaced_bytes);
  placed.address = placer.place(image, facts.first_seen_addr, placed.size_bytes);
  placed_.emplace(image, placed);
}

void ChunkImages::list_used(std::span<const FrameKey> frames, const FrameNames& names) {
  std::set<std::pair<uint64_t, uint32_t>> used;  // (address, image): in the order of the list
  for (const FrameKey& frame : frames) {
    if (frame.image == FrameKey::kNoImage || !names.image(frame.image).is_file) continue;
    const Placed& placed = placed_.at(frame.image);
    if (lies_in(placed, frame.pc)) used.emplace(placed.address, frame.image);
  }
  for (const auto& [address, number] : used) {
    Placed& placed = placed_.at(number);
    placed.listed = static_cast<uint32_t>(listed_.size());
    Image& image = listed_.emplace_back(names.image(number).image);
    image.code_file = bounded_path(image.code_file);
    image.image_addr = address;
    image.image_size = placed.size_bytes;
  }
}

ChunkImages::Place ChunkImages::locate(const FrameKey& frame) const {
  if (frame.image == FrameKey::kNoImage) return {address_outside_images(frame.pc)};
  const Placed& placed = placed_.at(frame.image);
  const uint64_t address = placed.address + (frame.pc - placed.vmaddr);
  if (!lies_in(placed, frame.pc)) return {address_outside_images(address)};
  return {address, placed.listed};
}

bool ChunkImages::is_in_listed_image(uint64_t address) const {
  auto after = std::upper_bound(listed_.begin(), listed_.end(), address,
                                [](uint64_t a, const Image& i) { return a < i.image_addr; });
  if (after == listed_.begin()) return false;
  const Image& image = *std::prev(after);
  return address - image.image_addr < image.image_size;
}

// An image may have been moved to where another process has, say, its JIT code. The server would
// give such an address the image's symbols.
uint64_t ChunkImages::address_outside_images(uint64_t address) const {
  return is_in_listed_image(address) ? address | kOutside : address;
}

}  // namespace sentry_prof::profile
