// `record --upload`: chunk after chunk to Sentry while the recording goes on.
#pragma once

#include "cli/chunk_outputs.h"
#include "cli/record_options.h"
#include "cli/sender.h"
#include "os/clock.h"
#include "os/signals.h"
#include "recorder/figures.h"
#include "sentry/transaction_link.h"
#include "upload/stop_event.h"
#include "upload/upload_queue.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sentry_prof::cli {

// What the uploads of a recording came to. Only its own decide, not what earlier runs left in the
// spool.
struct UploadEnd {
  bool is_safe = true;  // all was accepted, or waits on disk
  int exit_code = 0;    // the highest of what went wrong, as `upload` has it
  recorder::UploadFigures figures;
};

class RecordUpload final : public ChunkUpload {
 public:
  // Before other threads run, and behind the fork of a command that is launched. What is not sent
  // in the end, and is in no spool, goes beside `output_path` (empty: into the current directory).
  // Errors as those of Sender::create; Io, PermissionDenied, NotFound if that place, or the spool,
  // cannot be written to.
  static Result<std::unique_ptr<RecordUpload>> start(const RecordOptions& options,
                                                     const std::string& output_path,
                                                     const os::SignalSet& signals);

  // Finishing thread.
  Result<void> send_chunk(const Profile& profile, std::string_view json) override;

  // The recording is over: sends the transaction and what is left, for as long as `upload` would
  // try; where a signal asked for the end for at most 5 s, and until `signal_fd` is readable. Then
  // says what was not sent and where it is. `on_tick`: as leave() has it.
  UploadEnd finish(int signal_fd, bool was_end_asked_for, const std::function<void()>& on_tick);

 private:
  RecordUpload(const RecordOptions& options, upload::StopEvent stop)
      : options_(options), stop_(std::move(stop)) {}
  void follow(const Profile& profile);
  Result<void> put(std::string envelope, upload::Categories categories);
  void send_transaction();
  uint64_t transaction_start_unix_ns() const;
  void send_the_rest(int signal_fd, uint64_t patience_ns, const std::function<void()>& on_tick);
  uint64_t keep_unsent(const upload::QueueFigures& figures);
  void tell(const upload::QueueFigures& figures);

  const RecordOptions& options_;
  std::string unsent_directory_;  // ends in '/', or empty
  upload::StopEvent stop_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<upload::UploadQueue> queue_;
  uint64_t begin_boottime_ns_ = os::boottime_ns();
  // Of the transaction:
  Session session_;
  sentry::ProfilerLink link_;
  uint64_t start_unix_ns_ = 0;  // 0: no chunk yet
  uint64_t end_unix_ns_ = 0;
};

}  // namespace sentry_prof::cli
