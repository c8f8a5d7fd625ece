// What the unwind information of all images of a session may take.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sentry_prof::elf {

// In bytes kept: copied sections and indexes of all that runs on a desktop are below 200 MiB; of
// one program seldom more than 20. Half of what the service may have (MemoryMax= of
// packaging/systemd/sentry-prof@.service).
struct CfiBudget {
  uint64_t bytes_left = uint64_t{256} << 20;
  // In the recording thread's time, whatever is kept: a second each of decompressing, where what is
  // stored counts as well, and of reading the entries of sections that have no search table (of
  // hostile ones each takes 0.5 us).
  uint64_t expandable_bytes_left = kMostExpandable_bytes;
  uint64_t indexable_entries_left = kMostIndexable_entries;

  static constexpr uint64_t kMostExpandable_bytes = uint64_t{64} << 20;
  static constexpr uint64_t kMostIndexable_entries = uint64_t{1} << 21;
  static constexpr uint64_t kRefill_bytes = uint64_t{1} << 20;
  static constexpr uint64_t kRefill_entries = uint64_t{1} << 15;
  // With each chunk, so that a recording of months reads those of later programs, too.
  void refill() {
    if (expandable_bytes_left < kMostExpandable_bytes) expandable_bytes_left += kRefill_bytes;
    indexable_entries_left =
        std::min(indexable_entries_left + kRefill_entries, kMostIndexable_entries);
  }
};

}  // namespace sentry_prof::elf
