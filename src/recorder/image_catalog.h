// The images that a chunk's frames refer to, as the finishing thread sees them, and their names.
#pragma once

#include "profile/finish_chunk.h"
#include "recorder/anonymous_regions.h"
#include "recorder/figures.h"
#include "symbols/perf_map.h"
#include "symbols/symbol_names.h"
#include "target/image_store.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace sentry_prof::recorder {

// What one chunk needs, taken from the recording thread's stores when the chunk is cut.
struct ChunkImages {
  struct File {
    std::shared_ptr<const target::LoadedImage> image;
    std::shared_ptr<const elf::FunctionStarts> function_starts;  // null without unwind tables
    std::shared_ptr<const ByteSource> debug_file;                // null: none is needed or there
  };
  std::unordered_map<uint32_t, File> files;
  std::unordered_map<uint32_t, AnonymousRegions::Region> regions;
  std::unordered_map<uint32_t, target::JitMap> jit_maps;  // by Region::program
};

ChunkImages images_of_chunk(const profile::RawChunk& chunk, const target::ImageStore& images,
                            const AnonymousRegions& regions);

// Names from the images' symbol tables and those of their debug files, else where functions begin
// by their CFI; of JIT code from its process's JIT map. The finishing thread's half.
class SymbolFrameNames final : public profile::FrameNames {
 public:
  explicit SymbolFrameNames(ChunkImages images);

  const profile::ImageFacts& image(uint32_t image) const override;
  std::vector<profile::FrameName> names_of(std::span<const profile::FrameKey> frames) override;

  // Of all frames that were named.
  const JitFigures& jit() const { return jit_; }
  const symbols::SymbolBudget& symbol_budget() const { return symbol_budget_; }

 private:
  using Frames = std::span<const profile::FrameKey>;
  using Names = std::vector<profile::FrameName>;

  void name_frames_of(const ChunkImages::File& file, Frames frames, std::vector<uint32_t> members,
                      Names& names);
  void name_jit_frames(Frames frames, Names& names);
  void name_jit_frames_of(const target::JitMap& jit_map, Frames frames,
                          std::vector<uint32_t> members, Names& names);

  ChunkImages images_;
  std::unordered_map<uint32_t, profile::ImageFacts> facts_;
  profile::ImageFacts unknown_;
  symbols::SymbolBudget symbol_budget_;
  symbols::PerfMapBudget jit_budget_;
  JitFigures jit_;
};

}  // namespace sentry_prof::recorder
