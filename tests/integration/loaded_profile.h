// A written V1 or V2 file, read back: what the tests ask their questions of.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::testing {

struct LoadedFrame {
  static constexpr size_t kNoImage = SIZE_MAX;
  std::string function;
  uint64_t address = 0;
  size_t image = kNoImage;  // the one image that holds the address
};

struct LoadedImage {
  std::string type, code_file, debug_id, code_id, arch;
  uint64_t begin = 0;
  uint64_t end = 0;  // exclusive
};

struct LoadedSample {
  int64_t time_ns = 0;  // V2: Unix time; V1: since the profile's start
  std::string thread_id;
  std::vector<size_t> stack;  // frames, leaf first; empty: the thread is idle from here on
};

using FramePredicate = std::function<bool(const LoadedFrame&)>;

struct LoadedProfile {
  // Throws std::runtime_error where the file is no such JSON, an address lies in several images, or
  // an index leads nowhere.
  static LoadedProfile load(const std::string& path);

  std::string path, version, platform, release, environment;
  std::string event_id, transaction_id, trace_id, active_thread_id, timestamp;  // V1
  std::string chunk_id, profiler_id;                                            // V2
  std::vector<LoadedImage> images;
  std::vector<LoadedFrame> frames;
  std::vector<LoadedSample> samples;
  std::map<std::string, std::string> thread_names;  // by thread id

  const std::string& leaf(const LoadedSample& sample) const;
  const std::string& root(const LoadedSample& sample) const;
  bool contains(const LoadedSample& sample, std::string_view function) const;
  // Position of a function in the stack (0: leaf), or -1.
  int index_of(const LoadedSample& sample, std::string_view function) const;
  // Path of the image that a frame lies in; empty without one.
  std::string_view code_file(const LoadedFrame& frame) const;

  // Samples with a stack; `thread_id` empty: of all threads.
  std::vector<const LoadedSample*> busy_samples(std::string_view thread_id = "") const;
  // Shares of those, 0 to 1; 0 where there are none.
  double share_with_leaf(std::string_view function, std::string_view thread_id = "") const;
  double share_containing(std::string_view function, std::string_view thread_id = "") const;
  double share_with_frame(const FramePredicate& matches, std::string_view thread_id = "") const;
  double share_of_samples(const std::function<bool(const LoadedSample&)>& matches,
                          std::string_view thread_id = "") const;

  size_t idle_markers(std::string_view thread_id = "") const;
  // Ids of threads that have a sample, of those whose name is `name` (or contains it).
  std::set<std::string> thread_ids() const;
  std::set<std::string> threads_named(std::string_view part_of_name) const;
  size_t images_whose_file_contains(std::string_view part_of_path) const;
};

}  // namespace sentry_prof::testing
