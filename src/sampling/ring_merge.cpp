#include "sampling/ring_merge.h"

#include <algorithm>

namespace sentry_prof::sampling {

bool RingMerge::comes_later(const Head& a, const Head& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.ring > b.ring;
}

void RingMerge::push_front_of(std::span<RingReader> readers, size_t ring, uint64_t limit_ns) {
  if (!readers[ring].front()) return;
  const uint64_t time_ns = readers[ring].front_time_ns();
  if (time_ns > limit_ns) return;
  heap_.push_back({time_ns, ring});
  std::push_heap(heap_.begin(), heap_.end(), comes_later);
}

void RingMerge::merge(std::span<RingReader> readers, uint64_t limit_ns, RecordSink& sink) {
  heap_.clear();
  for (size_t ring = 0; ring < readers.size(); ++ring) push_front_of(readers, ring, limit_ns);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), comes_later);
    const Head head = heap_.back();
    heap_.pop_back();
    last_time_ns_ = std::max(last_time_ns_, head.time_ns);
    readers[head.ring].prefetch_second();
    sink.on_record(head.ring, last_time_ns_, readers[head.ring].front_bytes(scratch_));
    readers[head.ring].pop();
    sink.on_consumed(head.ring);
    push_front_of(readers, head.ring, limit_ns);
  }
}

}  // namespace sentry_prof::sampling
