// The events of a perf.data file: which of them wrote a record, and how it is laid out. Pure.
#pragma once

#include "formats/perf_data_header.h"
#include "sampling/record_decoder.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sentry_prof::formats {

// Whether a record can have this time: perf's own have 0, or all bits set. More than 292 years is
// damage.
constexpr bool is_perf_time(uint64_t time_ns) { return time_ns != 0 && time_ns <= INT64_MAX; }

class PerfEventTable {
 public:
  // Unsupported, with the next step: no event has user registers and stacks; records do not tell
  // their events apart; samples without thread or time.
  static Result<PerfEventTable> create(const std::vector<PerfEvent>& events);

  static constexpr size_t kUnknown = SIZE_MAX;
  // By the identifier in it. Records that perf wrote itself have none: kUnknown.
  size_t event_of(Bytes record) const;
  // kUnknown has the layout of the first event.
  const sampling::RecordLayout& layout_of(size_t event) const {
    return layouts_[event == kUnknown ? 0 : event];
  }
  // 0 if the record has none.
  uint64_t time_of(size_t event, Bytes record) const;
  // The first event with user registers and stacks.
  size_t sampled_event() const { return sampled_; }

 private:
  std::vector<sampling::RecordLayout> layouts_;
  std::unordered_map<uint64_t, size_t> event_by_id_;
  size_t sampled_ = 0;
};

}  // namespace sentry_prof::formats
