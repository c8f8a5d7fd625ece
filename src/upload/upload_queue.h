// The uploader thread of a recording: whoever puts an envelope in never waits for the network.
//
// Without a spool envelopes wait in memory, and the oldest make room for new ones where a server
// stays away for too long. With one they are on disk before put() returns, what earlier runs left
// there is sent too, and nothing is held in memory but the envelope on its way. What a full or
// failing disk does not take waits in memory instead.
#pragma once

#include "upload/body_encoding.h"
#include "upload/outcome.h"
#include "upload/sending_round.h"
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
#include <random>
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
  // Between the last try of an envelope and the first of its next round, at most; up to kMostPauses
  // times as long where the DSN or the address is wrong.
  uint64_t pause_ns = 30'000'000'000;
};

// Of what put() was given; the spool may have that of earlier runs, too.
struct OwnFigures {
  uint64_t refused = 0;
  std::optional<Outcome> refusal;  // the last
  SpoolLosses losses;
  size_t left_in_spool = 0;
};

struct QueueFigures {
  uint64_t accepted = 0;
  uint64_t refused = 0;                // for good, by the server
  uint64_t dropped = 0;                // from memory, to make room
  uint64_t not_kept = 0;               // that the spool could not take, and memory took
  SpoolLosses losses;                  // by this process's hands
  std::optional<Outcome> trouble;      // why something is left: the last answer that was no verdict
  std::optional<Error> error;          // the spool's, if not all went well since
  std::vector<QueuedEnvelope> unsent;  // that no spool has, the oldest first
  size_t left_in_spool = 0;
  size_t left_for_others = 0;  // that wait there for other destinations
  OwnFigures own;              // of all these
};

// What is told while a recording goes on, for months perhaps. All but `spool_failed` and
// `spool_works` are called on the queue's thread, those in put().
struct QueueEvents {
  // An envelope is refused, or sending begins to fail.
  std::function<void(const Outcome&)> failed = [](const Outcome&) {};
  // The spool's disk no longer takes envelopes; it does again.
  std::function<void(const Error&)> spool_failed = [](const Error&) {};
  std::function<void()> spool_works = [] {};
  // What was sent cannot be removed from the spool, or memory ran out.
  std::function<void(const Error&)> sending_failed = [](const Error&) {};
};

enum class QueueEnd : uint8_t {
  Done,  // nothing is left, or nothing that would be tried again
  GoingOn,
  Limited,
};

class UploadQueue {
 public:
  // `uploader` belongs to the queue's thread until finish() returns; its client and waiter end
  // early once `stop` is set. With a spool's path two hands are opened on it, one a thread.
  static Result<std::unique_ptr<UploadQueue>> start(Uploader& uploader, const StopEvent& stop,
                                                    const std::string& spool_path,
                                                    QueueOptions options, QueueEvents events);
  ~UploadQueue();

  // Never waits for the network; with a spool for the disk.
  void put(QueuedEnvelope envelope);

  // No more is put in. GoingOn after `wait_ns`; Limited at once if the server wants to be left
  // alone for longer than `patience_ns` from now.
  QueueEnd end_within(uint64_t wait_ns, uint64_t patience_ns);
  // Goes on for at most `grace_ns`, then cancels what is on its way.
  QueueFigures finish(uint64_t grace_ns);

 private:
  // In the order of put(), from 1: what is put back gets its old place.
  struct Numbered {
    uint64_t number = 0;
    QueuedEnvelope envelope;
  };

  UploadQueue(Uploader& uploader, const StopEvent& stop, QueueOptions options, QueueEvents events)
      : uploader_(uploader), stop_(stop), options_(options), events_(std::move(events)) {}
  void run();
  bool wait_for_work();
  uint64_t next_pause_ns();
  bool keep(const QueuedEnvelope& envelope);
  bool send_round();
  Outcome send(const QueuedEnvelope& envelope, Tries tries);
  bool send_spool_round();
  bool send_numbered(Numbered numbered, SendingRound& round);
  bool send_memory_round();
  // Envelopes in memory that a round has not taken yet: those with numbers in between.
  struct Untried {
    uint64_t behind = 0;
    uint64_t before = UINT64_MAX;
  };
  // The first one in memory behind `number`.
  std::deque<Numbered>::iterator behind(uint64_t number);
  std::optional<Numbered> take_next(Untried& untried, bool is_newest);
  void put_back(Numbered numbered);
  void make_room();
  void note(const Outcome& outcome, bool is_own = true);
  void note_failed_try(const Outcome& outcome);
  void note_wait(const Wait& wait);
  void note_error(Error error);
  void forget_error();
  void tell_once(const Outcome& outcome);
  void collect_what_is_left();

  Uploader& uploader_;
  const StopEvent& stop_;
  QueueOptions options_;
  QueueEvents events_;
  std::optional<Spool> keeping_;  // put()'s
  std::optional<Spool> sending_;  // the thread's
  static constexpr uint64_t kMostPauses = 20;
  // Ten minutes of pauses: chunks come once a minute, so others are tried in between.
  static constexpr uint32_t kRoundsOfOneInTrouble = 20;
  uint64_t pauses_ = 1;
  std::mt19937_64 jitter_{std::random_device()()};
  std::optional<OutcomeKind> told_;  // the thread's
  bool had_error_ = false;           // in this round; the thread's
  // Since the server last accepted anything; as many as any before it ever did. The thread's.
  uint32_t rounds_without_accepted_ = kRoundsOfOneInTrouble;
  bool is_spool_failing_ = false;  // put()'s

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Numbered> queue_;
  uint64_t last_number_ = 0;
  size_t queued_bytes_ = 0;
  bool has_news_ = false;
  bool is_ending_ = false;
  bool has_ended_ = false;
  uint64_t limited_until_ns_ = 0;  // monotonic; what is on its way waits for a rate limit
  QueueFigures figures_;
  std::thread thread_;
};

}  // namespace sentry_prof::upload
