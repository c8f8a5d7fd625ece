// The sink of `record`: each chunk as JSON, made once, to its files and to Sentry.
#pragma once

#include "cli/chunk_files.h"
#include "cli/record_upload.h"
#include "recorder/chunk_sink.h"
#include "sentry_prof/sentry.h"

namespace sentry_prof::cli {

class ChunkOutputs final : public recorder::ChunkSink {
 public:
  // Either may be null, not both; they must outlive the sink.
  ChunkOutputs(SentryFormat format, ChunkFiles* files, RecordUpload* upload)
      : format_(format), files_(files), upload_(upload) {}

  // Goes to both whatever becomes of the first.
  Result<void> write(const Profile& profile, uint32_t chunk_number) override;
  bool is_broken() const override {
    return upload_ == nullptr && files_ != nullptr && files_->is_broken();
  }

 private:
  SentryFormat format_;
  ChunkFiles* files_;
  RecordUpload* upload_;
};

}  // namespace sentry_prof::cli
