// Counts what came out of the rings, and what did not. Pure.
#pragma once

#include "sampling/record_decoder.h"
#include "sampling/sampler.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::sampling {

enum class RecordFate : uint8_t {
  HandedOn,   // became an event
  Unknown,    // of a type that is skipped
  Outside,    // of a new process, where children are not followed
  Duplicate,  // a thread born during the attach was sampled twice
};

// Losses stay at this, so that they and all else that is counted can be added up: files may tell of
// any number.
inline constexpr uint64_t kMostLost = INT64_MAX;
constexpr uint64_t sum_of_lost(uint64_t a, uint64_t b) {
  return a < kMostLost && b < kMostLost - a ? a + b : kMostLost;
}

class RecordCounter {
 public:
  // Each record, once.
  void count(const RecordHeader& header, const DecodedRecord& decoded);
  // What became of it; only samples that were not handed on have figures of their own.
  void count_fate(const DecodedRecord& decoded, RecordFate fate);
  // So many times the rest of a ring could not be read. What stood there is not known: each time
  // counts as one sample that could not be decoded, since nearly all bytes of a ring are samples.
  void count_malformed(uint64_t times);
  // What the sampling events lost by the kernel's own count, if it has one. Until then the losses
  // are what PERF_RECORD_LOST says; it comes only with the next record that finds room, and does
  // not say what was lost.
  void set_lost_by_events(std::optional<uint64_t> lost);

  SamplerStats& stats() { return stats_; }
  const SamplerStats& stats() const { return stats_; }

 private:
  void count_body(const RecordHeader& header, const Event& event);
  void update_losses();

  SamplerStats stats_;
  uint64_t lost_by_records_ = 0;      // PERF_RECORD_LOST, of any kind
  uint64_t dropped_by_hardware_ = 0;  // PERF_RECORD_LOST_SAMPLES, never came to a ring
  std::optional<uint64_t> lost_by_events_;
};

}  // namespace sentry_prof::sampling
