// Merges the records of several rings by time. Pure.
#pragma once

#include "sampling/ring_reader.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::sampling {

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // `ring` is the index into the readers. The reader has not moved past the record yet.
  virtual void on_record(size_t ring, uint64_t time_ns, Bytes record) = 0;
  // The reader has moved past it: its bytes may be given back to the kernel.
  virtual void on_consumed(size_t ring) = 0;
};

// The kernel writes each ring nearly in order of time: a record may carry a stamp taken just before
// an interrupt whose sample went in first. Such a record keeps its place and gets the time of the
// one before it, so that times never decrease from one record to the next.
class RingMerge {
 public:
  // Hands on all records not younger than `limit_ns`. At equal times the lower ring comes first,
  // and the order inside a ring stays.
  void merge(std::span<RingReader> readers, uint64_t limit_ns, RecordSink& sink);

 private:
  struct Head {
    uint64_t time_ns;
    size_t ring;
  };
  static bool comes_later(const Head& a, const Head& b);
  void push_front_of(std::span<RingReader> readers, size_t ring, uint64_t limit_ns);

  std::vector<Head> heap_;  // kept for its memory; empty between two calls
  uint64_t last_time_ns_ = 0;
  RecordScratch scratch_;
};

}  // namespace sentry_prof::sampling
