// Where finished chunks go. cli composes it: a file in a format, an uploader, or both.
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
  // A chunk was lost, in another way than the last one that was. On the finishing thread.
  virtual void on_loss(const std::string& /*error_message*/) {}
  // The recording is over, before its last chunk is handed on: what is lost from now on is told
  // with the summary. On the recording thread, while a chunk may be written.
  virtual void on_recording_end() {}
  // No further chunk can be written (a closed pipe): recording on would be for nothing. Asked on
  // the finishing thread after a failed write.
  virtual bool is_broken() const { return false; }
};

}  // namespace sentry_prof::recorder
