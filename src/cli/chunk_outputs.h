// The sink of `record`: each chunk as JSON, made once, to its files and to Sentry.
#pragma once

#include "cli/chunk_files.h"
#include "recorder/chunk_sink.h"
#include "sentry_prof/sentry.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace sentry_prof::cli {

// Takes chunks to Sentry; RecordUpload.
class ChunkUpload {
 public:
  virtual ~ChunkUpload() = default;
  // `json` is the chunk as to_sentry_json() wrote it.
  virtual Result<void> send_chunk(const Profile& profile, std::string_view json) = 0;
};

// Chunks that are in one of the two places only.
struct HalfWritten {
  uint64_t not_in_files = 0;
  uint64_t not_uploaded = 0;
  std::string first_error;
};

class ChunkOutputs final : public recorder::ChunkSink {
 public:
  // Either may be null, not both; they must outlive the sink.
  ChunkOutputs(SentryFormat format, ChunkFiles* files, ChunkUpload* upload)
      : format_(format), files_(files), upload_(upload) {}

  // Goes to both whatever becomes of the first. An error means that neither has it: its samples are
  // lost then, and only then.
  Result<void> write(const Profile& profile, uint32_t chunk_number) override;
  void on_loss(const std::string& error_message) override;
  void on_recording_end() override { is_recording_ = false; }
  bool is_broken() const override {
    return upload_ == nullptr && files_ != nullptr && files_->is_broken();
  }
  // The recording must be over.
  const HalfWritten& half_written() const { return half_written_; }

 private:
  void complain_meanwhile(const std::string& error) const;

  SentryFormat format_;
  ChunkFiles* files_;
  ChunkUpload* upload_;
  HalfWritten half_written_;
  std::atomic<bool> is_recording_ = true;
};

}  // namespace sentry_prof::cli
