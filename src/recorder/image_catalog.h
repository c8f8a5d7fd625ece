// The images that a chunk's frames refer to, as the finishing thread sees them, and their names.
#pragma once

#include "profile/finish_chunk.h"
#include "target/image_store.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sentry_prof::recorder {

// Executable memory without a file (JIT code): each region of each process gets a number of its own
// above all image numbers, so that it can be placed apart from the images.
class AnonymousRegions {
 public:
  static constexpr uint32_t kFirst = 0x8000'0000;
  // JIT compilers map thousands of regions in a long run; past this many, new ones share none and
  // their frames keep the raw address.
  static constexpr size_t kMaxRegions = 65'536;

  struct Region {
    uint32_t pid = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  // profile::FrameKey::kNoImage if there are too many.
  uint32_t number_of(uint32_t pid, uint64_t begin, uint64_t end);
  const Region& region(uint32_t number) const { return regions_[number - kFirst]; }

 private:
  std::vector<Region> regions_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> by_begin_;
};

// What one chunk needs, taken from the recording thread's stores when the chunk is cut.
struct ChunkImages {
  std::unordered_map<uint32_t, std::shared_ptr<const target::LoadedImage>> files;
  std::unordered_map<uint32_t, std::shared_ptr<const elf::FunctionStarts>> function_starts;
  std::unordered_map<uint32_t, AnonymousRegions::Region> regions;
};

ChunkImages images_of_chunk(const profile::RawChunk& chunk, const target::ImageStore& images,
                            const AnonymousRegions& regions);

// Names from the images' own symbol tables, else where functions begin by their CFI; the finishing
// thread's half.
class SymbolFrameNames final : public profile::FrameNames {
 public:
  explicit SymbolFrameNames(ChunkImages images);

  const profile::ImageFacts& image(uint32_t image) const override;
  std::vector<std::string> names_of(std::span<const profile::FrameKey> frames) override;
  std::optional<uint64_t> function_start(const profile::FrameKey& frame) const override;

 private:
  void name_frames_of(const target::LoadedImage& image, std::span<const profile::FrameKey> frames,
                      std::vector<uint32_t> members, std::vector<std::string>& names) const;

  ChunkImages images_;
  std::unordered_map<uint32_t, profile::ImageFacts> facts_;
  profile::ImageFacts unknown_;
};

}  // namespace sentry_prof::recorder
