// Where finished chunks go. cli composes it: a file in a format, later an uploader, or both.
#pragma once

#include "sentry_prof/profile.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <string>

namespace sentry_prof::recorder {

class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  // Called on the finishing thread, in order. `chunk_number` counts from 1 what the
  // sink was handed, written or not.
  virtual Result<void> write(const Profile& profile, uint32_t chunk_number) = 0;
  // A chunk was lost, in another way than the last one that was, and the recording goes on: in a
  // long one nobody should learn of it at the end only. On the finishing thread.
  virtual void on_loss(const std::string& /*error_message*/) {}
  // No further chunk can be written (a closed pipe): recording on would be for nothing. Asked on
  // the finishing thread after a failed write.
  virtual bool is_broken() const { return false; }
};

}  // namespace sentry_prof::recorder
