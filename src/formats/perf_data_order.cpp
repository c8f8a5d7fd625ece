#include "formats/perf_data_order.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::formats {

bool PerfRecordOrder::comes_later(const Held& a, const Held& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.serial > b.serial;
}

void PerfRecordOrder::add(uint64_t time_ns, size_t event, Bytes record) {
  held_bytes_ += record.size() + kHeld_bytes;
  youngest_ns_ = std::max(youngest_ns_, time_ns);
  heap_.push_back({time_ns, serials_++, event, {record.begin(), record.end()}});
  std::push_heap(heap_.begin(), heap_.end(), comes_later);
  while (held_bytes_ > max_held_bytes_) deliver_oldest();
}

void PerfRecordOrder::finish_round() {
  while (!heap_.empty() && heap_.front().time_ns <= settled_ns_) deliver_oldest();
  settled_ns_ = youngest_ns_;
}

void PerfRecordOrder::finish() {
  while (!heap_.empty()) deliver_oldest();
}

void PerfRecordOrder::deliver_oldest() {
  std::pop_heap(heap_.begin(), heap_.end(), comes_later);
  Held oldest = std::move(heap_.back());
  heap_.pop_back();
  held_bytes_ -= oldest.record.size() + kHeld_bytes;
  if (oldest.time_ns < delivered_ns_) ++late_records_;
  delivered_ns_ = std::max(delivered_ns_, oldest.time_ns);
  deliver_(delivered_ns_, oldest.event, oldest.record);
}

}  // namespace sentry_prof::formats
