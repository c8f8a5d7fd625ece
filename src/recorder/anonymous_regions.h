// Executable memory without a file (JIT code): where it is, and what names it.
#pragma once

#include "target/image_store.h"
#include "target/jit_map.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sentry_prof::recorder {

// target::TargetFiles::find_jit_map(), or what stands for it.
using FindJitMap = std::function<Result<target::JitMap>(uint32_t pid, uint64_t program_begin_ns)>;

// Each region of each process gets a number of its own above all image numbers, so that it can be
// placed apart from the images. The numbers are those of one chunk. Of the recording thread.
class AnonymousRegions {
 public:
  static constexpr uint32_t kFirst = target::ImageStore::kMaxIds;
  // JIT compilers map thousands of regions in a chunk's time; past this many, new ones share none
  // and their frames keep the raw address.
  static constexpr size_t kMaxRegions = 65'536;
  // Each is an open file. Of processes beyond them JIT code stays without names, which is told.
  static constexpr size_t kMaxJitMaps = 256;
  static constexpr size_t kMaxProblems = 5;
  // Of processes whose ends may get lost.
  static constexpr size_t kMaxExecs = 65'536;

  struct Region {
    uint32_t program = 0;  // numbered in this session; a process has another after each exec
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  // `find_jit_map` may be empty.
  explicit AnonymousRegions(FindJitMap find_jit_map) : find_jit_map_(std::move(find_jit_map)) {}

  // profile::FrameKey::kNoImage if there are too many.
  uint32_t number_of(uint32_t pid, uint64_t begin, uint64_t end);
  const Region& region(uint32_t number) const { return regions_[number - kFirst]; }
  // By Region::program, those that there are.
  std::unordered_map<uint32_t, target::JitMap> jit_maps() const;

  // Looks for its map once more.
  void on_process_end(uint32_t pid);
  void on_exec(uint32_t pid, uint64_t time_ns);
  // Before a chunk is handed on: looks for maps of processes that had none so far; many begin one
  // only when they are told to.
  void look_for_jit_maps();
  // Behind it: numbers begin anew, and the maps of ended processes are closed.
  void begin_chunk();

  // Why JIT maps that are there are not used; the first few of a session.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Program {
    uint32_t number = 0;
    uint64_t begin_ns = 0;                           // of its exec, if that was seen; else 0
    std::unordered_map<uint64_t, uint32_t> regions;  // by their begin
    target::JitMap jit_map;
  };

  void end_program(uint32_t pid);
  void look_for_jit_map(uint32_t pid, Program& program);
  void note_problem(std::string text);
  size_t open_maps() const;

  FindJitMap find_jit_map_;
  std::vector<Region> regions_;
  uint32_t programs_ = 0;
  std::unordered_map<uint32_t, Program> living_;     // by pid; those that were seen in such code
  std::unordered_map<uint32_t, uint64_t> execs_ns_;  // by pid; times of the last ones
  std::vector<Program> ended_;                       // since the last chunk, with a map
  std::vector<std::string> problems_;
};

}  // namespace sentry_prof::recorder
