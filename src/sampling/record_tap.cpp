#include "sampling/record_tap.h"

namespace sentry_prof::sampling {

void RecordPlayer::play(uint64_t time_ns, RecordFate fate, Bytes record,
                        std::span<const StackPiece> outer_stack, EventSink& sink) {
  DecodedRecord decoded = decode_record(layout_, record);
  decoded.event.time_ns = time_ns;
  if (auto* sample = std::get_if<SampleEvent>(&decoded.event.body)) {
    sample->outer_stack = outer_stack;
  }
  if (!decoded.is_known_type) fate = RecordFate::Unknown;
  counter_.count(read_record_header(record), decoded);
  counter_.count_fate(decoded, fate);
  if (fate == RecordFate::HandedOn) sink.on_event(decoded.event);
}

void RecordPlayer::finish(const SamplerStats& told) {
  // Unreadable rests of a ring left no record that could have been kept.
  if (told.records > stats().records) counter_.count_malformed(told.records - stats().records);
  counter_.stats().lost_samples = told.lost_samples;
  counter_.stats().lost_records = told.lost_records;
  counter_.stats().cpus_not_sampled = told.cpus_not_sampled;
  counter_.stats().wakeups = told.wakeups;
}

}  // namespace sentry_prof::sampling
