#include "sampling/record_counter.h"

#include <algorithm>

#include <linux/perf_event.h>

namespace sentry_prof::sampling {

void RecordCounter::count(const RecordHeader& header, const DecodedRecord& decoded) {
  ++stats_.records;
  if (header.type == PERF_RECORD_SAMPLE) ++stats_.sample_records;
  if (decoded.is_known_type) {
    count_body(header, decoded.event);
  } else {
    ++stats_.unknown_type;
  }
}

void RecordCounter::count_body(const RecordHeader& header, const Event& event) {
  if (const auto* lost = std::get_if<LostEvent>(&event.body)) {
    const bool is_hardware = header.type == PERF_RECORD_LOST_SAMPLES;
    uint64_t& sum = is_hardware ? dropped_by_hardware_ : lost_by_records_;
    sum = sum_of_lost(sum, lost->count);
    update_losses();
  } else if (const auto* throttle = std::get_if<ThrottleEvent>(&event.body)) {
    if (throttle->begins) ++stats_.throttled;
  } else if (std::holds_alternative<UndecodableEvent>(event.body)) {
    ++stats_.undecodable;
    if (header.type == PERF_RECORD_SAMPLE) ++stats_.undecodable_samples;
  }
}

void RecordCounter::count_fate(const DecodedRecord& decoded, RecordFate fate) {
  if (!std::holds_alternative<SampleEvent>(decoded.event.body)) return;
  if (fate == RecordFate::Outside) ++stats_.outside_samples;
  if (fate == RecordFate::Duplicate) ++stats_.duplicate_samples;
}

void RecordCounter::count_malformed(uint64_t times) {
  stats_.records += times;
  stats_.sample_records += times;
  stats_.undecodable += times;
  stats_.undecodable_samples += times;
}

void RecordCounter::set_lost_by_events(std::optional<uint64_t> lost) {
  lost_by_events_ = lost;
  update_losses();
}

void RecordCounter::update_losses() {
  const uint64_t samples = lost_by_events_.value_or(lost_by_records_);
  stats_.lost_samples = sum_of_lost(samples, dropped_by_hardware_);
  stats_.lost_records = lost_by_records_ - std::min(lost_by_records_, samples);
}

}  // namespace sentry_prof::sampling
