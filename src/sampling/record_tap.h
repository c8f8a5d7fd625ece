// A place to look at kernel records as they are, and the way back from kept ones. Pure.
#pragma once

#include "sampling/record_counter.h"
#include "sampling/record_decoder.h"

#include <cstdint>
#include <span>

namespace sentry_prof::sampling {

// Receives every record in the order of the merge, before the event made of it is handed on.
class RecordTap {
 public:
  virtual ~RecordTap() = default;
  // `time_ns` is that of the merge: it never decreases. The bytes hold until this returns.
  // `outer_stack`: SampleEvent's.
  virtual void on_record(uint64_t time_ns, RecordFate fate, Bytes record,
                         std::span<const StackPiece> outer_stack) = 0;
};

// Makes the same events of stored records as the sampler did that they were taken from.
class RecordPlayer {
 public:
  explicit RecordPlayer(const RecordLayout& layout) : layout_(layout) {}
  // Any bytes: what is no record counts as undecodable.
  void play(uint64_t time_ns, RecordFate fate, Bytes record,
            std::span<const StackPiece> outer_stack, EventSink& sink);
  // Takes over what records do not tell from the figures of that sampler's run.
  void finish(const SamplerStats& told);
  const SamplerStats& stats() const { return counter_.stats(); }

 private:
  RecordLayout layout_;
  RecordCounter counter_;
};

}  // namespace sentry_prof::sampling
