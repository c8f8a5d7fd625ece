#include "formats/perf_data_order.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::formats {

namespace {

// Buffers of delivered records that are kept for the next ones.
constexpr size_t kMaxSpare = 64;
// What a held record takes besides its bytes.
constexpr size_t kHeld_bytes = 64;

}  // namespace

bool PerfRecordOrder::comes_later(const Held& a, const Held& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.serial > b.serial;
}

void PerfRecordOrder::add(uint64_t time_ns, size_t event, Bytes record) {
  Held held{time_ns, serials_++, event, {}};
  if (!spare_.empty()) {
    held.record = std::move(spare_.back());
    spare_.pop_back();
  }
  held.record.assign(record.begin(), record.end());
  held_bytes_ += record.size() + kHeld_bytes;
  youngest_ns_ = std::max(youngest_ns_, time_ns);
  heap_.push_back(std::move(held));
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
  if (spare_.size() < kMaxSpare) spare_.push_back(std::move(oldest.record));
}

}  // namespace sentry_prof::formats
