// The images that a chunk's frames refer to, as the finishing thread sees them, and their names.
#pragma once

#include "profile/finish_chunk.h"
#include "recorder/figures.h"
#include "target/image_store.h"
#include "target/jit_map.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sentry_prof::recorder {

using FindJitMap = std::function<target::JitMap(uint32_t pid)>;

// Executable memory without a file (JIT code): each region of each process gets a number of its own
// above all image numbers, so that it can be placed apart from the images.
class AnonymousRegions {
 public:
  // `find_jit_map` may be empty.
  explicit AnonymousRegions(FindJitMap find_jit_map) : find_jit_map_(std::move(find_jit_map)) {}

  static constexpr uint32_t kFirst = 0x8000'0000;
  // JIT compilers map thousands of regions in a long run; past this many, new ones share none and
  // their frames keep the raw address.
  static constexpr size_t kMaxRegions = 65'536;
  // Each is an open file. Of processes beyond them JIT code stays without names.
  static constexpr size_t kMaxJitMaps = 256;

  struct Region {
    uint32_t process = 0;  // counted in this session, each program that a process runs anew
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  // profile::FrameKey::kNoImage if there are too many.
  uint32_t number_of(uint32_t pid, uint64_t begin, uint64_t end);
  const Region& region(uint32_t number) const { return regions_[number - kFirst]; }
  // Of Region::process; may be empty.
  const target::JitMap& jit_map(uint32_t process) const { return processes_[process].jit_map; }

  // The process ended, or runs another program from now on.
  void end_process(uint32_t pid);
  // Of living processes without a map; many begin one only when they are told to.
  void look_for_jit_maps();
  // Those of ended processes are of no use to chunks that begin now.
  void close_ended_jit_maps();

 private:
  struct Process {
    uint32_t pid = 0;
    bool has_ended = false;
    target::JitMap jit_map;
  };

  uint32_t process_of(uint32_t pid);
  void look_for_jit_map(Process& process);

  FindJitMap find_jit_map_;
  std::vector<Region> regions_;
  std::vector<Process> processes_;
  size_t jit_maps_ = 0;
  std::unordered_map<uint32_t, uint32_t> process_by_pid_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> by_begin_;  // process and address
};

// What one chunk needs, taken from the recording thread's stores when the chunk is cut.
struct ChunkImages {
  std::unordered_map<uint32_t, std::shared_ptr<const target::LoadedImage>> files;
  std::unordered_map<uint32_t, std::shared_ptr<const elf::FunctionStarts>> function_starts;
  std::unordered_map<uint32_t, AnonymousRegions::Region> regions;
  std::unordered_map<uint32_t, target::JitMap>
      jit_maps;  // by Region::process, those that are there
};

ChunkImages images_of_chunk(const profile::RawChunk& chunk, const target::ImageStore& images,
                            const AnonymousRegions& regions);

// Names from the images' own symbol tables, else where functions begin by their CFI; of JIT code
// from its process's JIT map. The finishing thread's half.
class SymbolFrameNames final : public profile::FrameNames {
 public:
  explicit SymbolFrameNames(ChunkImages images);

  const profile::ImageFacts& image(uint32_t image) const override;
  std::vector<std::string> names_of(std::span<const profile::FrameKey> frames) override;
  std::optional<uint64_t> function_start(const profile::FrameKey& frame) const override;

  // Of all frames that were named.
  const JitFigures& jit() const { return jit_; }

 private:
  using Frames = std::span<const profile::FrameKey>;

  void name_frames_of(const target::LoadedImage& image, Frames frames,
                      std::vector<uint32_t> members, std::vector<std::string>& names) const;
  void name_jit_frames(Frames frames, std::vector<std::string>& names);
  void name_jit_frames_of(const target::JitMap& jit_map, Frames frames,
                          std::vector<uint32_t> members, std::vector<std::string>& names);

  ChunkImages images_;
  std::unordered_map<uint32_t, profile::ImageFacts> facts_;
  profile::ImageFacts unknown_;
  JitFigures jit_;
};

}  // namespace sentry_prof::recorder
