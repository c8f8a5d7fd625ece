// The uploader thread of a recording: whoever puts an envelope in never waits for the network.
//
// Without a spool envelopes wait in memory, and the oldest make room for new ones where a server
// stays away for too long. With one they are on disk before put() returns, what earlier runs left
// there is sent too, and nothing is held in memory but the envelope on its way.
#pragma once

#include "upload/body_encoding.h"
#include "upload/outcome.h"
#include "upload/spool.h"
#include "upload/stop_event.h"
#include "upload/uploader.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace sentry_prof::upload {

struct QueuedEnvelope {
  std::string body;
  BodyEncoding encoding = BodyEncoding::Identity;
  Categories categories;
};

struct QueueOptions {
  // An hour of packed chunks of one busy process.
  size_t max_bytes = 64 * 1024 * 1024;
  size_t max_envelopes = 1000;
  // Between the last try of an envelope and the first of its next round.
  uint64_t pause_ns = 30'000'000'000;
};

struct QueueFigures {
  uint64_t accepted = 0;
  uint64_t refused = 0;  // for good, by the server
  uint64_t dropped = 0;  // to make room, or too old; of a spool those of this process's hands
  uint64_t set_aside = 0;
  std::optional<Outcome> trouble;      // the last that was not accepted
  std::optional<Error> error;          // the spool's
  std::vector<QueuedEnvelope> unsent;  // without a spool, the oldest first
  size_t left_in_spool = 0;
};

class UploadQueue {
 public:
  using Tell = std::function<void(const Outcome&)>;

  // `uploader` belongs to the queue's thread until finish() returns; its client and waiter end
  // early once `stop` is set. `tell` is called on that thread when an envelope is refused, and when
  // sending begins to fail. With a spool's path two hands are opened on it, one a thread.
  static Result<std::unique_ptr<UploadQueue>> start(Uploader& uploader, const StopEvent& stop,
                                                    const std::string& spool_path,
                                                    QueueOptions options, Tell tell);
  ~UploadQueue();

  // Never waits for the network; with a spool for the disk, whose error it returns.
  Result<void> put(QueuedEnvelope envelope);

  // No more. Goes on for at most `grace_ns`, then cancels what is on its way.
  QueueFigures finish(uint64_t grace_ns);

 private:
  UploadQueue(Uploader& uploader, const StopEvent& stop, QueueOptions options, Tell tell)
      : uploader_(uploader), stop_(stop), options_(options), tell_(std::move(tell)) {}
  void run();
  bool wait_for_work();
  bool send_round();
  bool send_spool_round();
  bool send_memory_round();
  std::optional<QueuedEnvelope> take_front();
  void put_back(QueuedEnvelope envelope);
  void make_room();
  void note(const Outcome& outcome);

  Uploader& uploader_;
  const StopEvent& stop_;
  QueueOptions options_;
  Tell tell_;
  std::optional<Spool> keeping_;  // put()'s
  std::optional<Spool> sending_;  // the thread's
  std::optional<OutcomeKind> told_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedEnvelope> queue_;
  size_t queued_bytes_ = 0;
  bool has_news_ = false;
  bool is_ending_ = false;
  bool has_ended_ = false;
  QueueFigures figures_;
  std::thread thread_;
};

}  // namespace sentry_prof::upload
