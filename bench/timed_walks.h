// What walks over stored samples cost, whoever walks.
#pragma once

#include "cpu_time.h"
#include "os/clock.h"
#include "raw_log_samples.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sentry_prof::bench {

// What a walk says of itself.
struct WalkResult {
  size_t frames = 0;
  bool is_complete = false;
};

struct WalkFigures {
  double ns = 0;
  uint64_t frames = 0;
  uint64_t walks = 0;
  uint64_t complete = 0;
  double slowest_ns = 0;  // of each_once()

  void count(WalkResult walk) {
    frames += walk.frames;
    ++walks;
    complete += walk.is_complete ? 1 : 0;
  }
  double ns_a_frame() const { return frames == 0 ? 0 : ns / static_cast<double>(frames); }
  double frames_a_sample() const {
    return walks == 0 ? 0 : static_cast<double>(frames) / static_cast<double>(walks);
  }
};

// `walk` takes a sample and gives a WalkResult. Between two walks over one stack come all others:
// it is not in the CPU's cache.
template <typename Walk>
WalkFigures walk_each_once(const std::vector<StoredSample>& samples, Walk&& walk) {
  WalkFigures figures;
  const double begin_ns = cpu_now_ns();
  for (const StoredSample& sample : samples) {
    const uint64_t walk_begin_ns = os::monotonic_ns();
    figures.count(walk(sample));
    figures.slowest_ns =
        std::max(figures.slowest_ns, static_cast<double>(os::monotonic_ns() - walk_begin_ns));
  }
  figures.ns = cpu_now_ns() - begin_ns;
  return figures;
}

template <typename Walk>
WalkFigures walk_each_many_times(const std::vector<StoredSample>& samples, Walk&& walk) {
  constexpr int kRepetitions = 20;
  WalkFigures figures;
  for (const StoredSample& sample : samples) {
    walk(sample);
    const double begin_ns = cpu_now_ns();
    for (int i = 0; i < kRepetitions; ++i) figures.count(walk(sample));
    figures.ns += cpu_now_ns() - begin_ns;
  }
  return figures;
}

}  // namespace sentry_prof::bench
