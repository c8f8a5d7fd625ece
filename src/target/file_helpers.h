// The processes that open the target's files, and what they have open for us (the Linux half).
#pragma once

#include "os/fd.h"
#include "os/helper_processes.h"
#include "sentry_prof/result.h"
#include "target/file_requests.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace sentry_prof::target {

// os::HelperProcesses that are asked with FileRequests (FileServer). A file that one of them opened
// but told of too late, or that it could not be told to close, is closed before a later request, as
// soon as it answers again. The thread that called start() closes nothing itself: closing may take
// its second (FUSE). Its files wait for requests of other threads, and close_unneeded(). Who waits
// for whom, and when there is no answer, is said there. Any thread may call; the lock of this is
// never held while a helper is asked.
class FileHelpers {
 public:
  // Where a file is open that is not passed on.
  struct Place {
    size_t helper = 0;
    uint64_t file = 0;     // a number that no other file had, in any helper
    uint64_t subject = 0;  // of all requests for it
  };
  struct Replied {
    FileReply reply;
    os::Fd passed;
    Place place;  // of a file that was opened and not passed on
  };

  // Forks, as os::HelperProcesses::start(), and with its errors. `give_answer` gives a FileReply.
  static Result<std::shared_ptr<FileHelpers>> start(os::HelperProcesses::GiveAnswer give_answer);

  // All but Size, Read and Close. Of a file that is opened, and not passed on, close() is called
  // when it is not needed any more.
  std::optional<Replied> ask_any(FileRequest request);
  // Size or Read.
  std::optional<FileReply> ask(const Place& place, FileRequest request);
  void close(const Place& place);
  // Closes all that close() has left open, as long as helpers answer. Not by the thread that called
  // start().
  void close_unneeded();

  void end() { processes_->end(); }
  // Questions that got no answer, or were not asked therefore. Without requests to close: these
  // lose nothing.
  uint64_t given_up() const { return given_up_; }

 private:
  explicit FileHelpers(std::unique_ptr<os::HelperProcesses> processes)
      : processes_(std::move(processes)) {}
  // False if nothing was closed.
  bool close_owed();
  // Some of one helper and subject that may be asked for; empty if there are none.
  std::vector<Place> take_owed();
  void owe(const std::vector<Place>& places);
  bool ask_to_close(const std::vector<Place>& places);

  std::unique_ptr<os::HelperProcesses> processes_;
  std::atomic<uint64_t> given_up_ = 0;
  std::mutex mutex_;  // of all that follows
  uint64_t next_file_ = 0;
  // To be closed, by helper; also files that were not opened in the end.
  std::array<std::vector<Place>, os::HelperProcesses::kMostHelpers> owed_;
};

}  // namespace sentry_prof::target
