// `record --upload`: chunk after chunk to Sentry while the recording goes on.
#pragma once

#include "cli/record_options.h"
#include "cli/sender.h"
#include "recorder/chunk_sink.h"
#include "sentry/transaction_link.h"
#include "upload/stop_event.h"
#include "upload/upload_queue.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sentry_prof::cli {

// What the uploads of a recording came to.
struct UploadEnd {
  bool is_complete = true;  // all was accepted, or waits in the spool
  int exit_code = 0;        // of `upload` for the last that went wrong
};

class RecordUpload {
 public:
  // Before other threads run, and behind the fork of a command that is launched. Errors as those of
  // Sender::create.
  static Result<std::unique_ptr<RecordUpload>> start(const RecordOptions& options);

  // `json` is the chunk as to_sentry_json() wrote it. Finishing thread.
  Result<void> send_chunk(const Profile& profile, std::string_view json);

  // The recording is over: sends the transaction, goes on for at most 5 s, then says what was not
  // sent and where it is.
  UploadEnd finish();

 private:
  RecordUpload(const RecordOptions& options, upload::StopEvent stop)
      : options_(options), stop_(std::move(stop)) {}
  void follow(const Profile& profile);
  Result<void> put(std::string envelope, upload::Categories categories);
  void send_transaction();
  bool keep_unsent(const upload::QueueFigures& figures);
  void tell(const upload::QueueFigures& figures);

  const RecordOptions& options_;
  upload::StopEvent stop_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<upload::UploadQueue> queue_;
  // Of the transaction:
  Session session_;
  sentry::ProfilerLink link_;
  uint64_t start_unix_ns_ = 0;  // 0: no chunk yet
  uint64_t end_unix_ns_ = 0;
};

}  // namespace sentry_prof::cli
