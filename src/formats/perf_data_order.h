// Puts the records of a perf.data file into order of time. Pure.
#pragma once

#include "base/byte_reader.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace sentry_prof::formats {

// perf writes what it finds in the buffers of all CPUs, one after the other, and then a mark
// (PERF_RECORD_FINISHED_ROUND). A record may be older than ones of the round before it, but not
// than ones of the round before that.
class PerfRecordOrder {
 public:
  // `event`: which of the file's events wrote it. The bytes hold until it returns.
  using Deliver = std::function<void(uint64_t time_ns, size_t event, Bytes record)>;
  // Rounds of a machine with hundreds of CPUs. A file without marks is sorted within so much.
  static constexpr size_t kMaxHeld_bytes = size_t{256} << 20;
  // What a held record takes besides its bytes: an entry of the heap, which doubles when it grows,
  // and what the allocator adds. Each has memory of its own size: buffers that went from large
  // records to small ones would take more than is counted.
  static constexpr size_t kHeld_bytes = 128;

  explicit PerfRecordOrder(Deliver deliver, size_t max_held_bytes = kMaxHeld_bytes)
      : deliver_(std::move(deliver)), max_held_bytes_(max_held_bytes) {}

  // A copy is held. Equal times keep the order in which they were added.
  void add(uint64_t time_ns, size_t event, Bytes record);
  void finish_round();
  // Delivers all that is left.
  void finish();

  // Records that came after younger ones had been delivered: they got the time of those.
  uint64_t late_records() const { return late_records_; }

 private:
  struct Held {
    uint64_t time_ns = 0;
    uint64_t serial = 0;
    size_t event = 0;
    std::vector<std::byte> record;
  };
  static bool comes_later(const Held& a, const Held& b);
  void deliver_oldest();

  Deliver deliver_;
  size_t max_held_bytes_;
  std::vector<Held> heap_;  // the oldest first
  size_t held_bytes_ = 0;
  uint64_t serials_ = 0;
  uint64_t youngest_ns_ = 0;   // that was added
  uint64_t settled_ns_ = 0;    // youngest_ns_ when the last round ended
  uint64_t delivered_ns_ = 0;  // of the last one delivered
  uint64_t late_records_ = 0;
};

}  // namespace sentry_prof::formats
