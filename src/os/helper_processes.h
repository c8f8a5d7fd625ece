// Processes of our own for what may take for ever.
#pragma once

#include "base/byte_reader.h"
#include "os/fd.h"
#include "os/patience.h"
#include "sentry_prof/result.h"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <sys/types.h>

namespace sentry_prof::os {

// Asking a server of files that hangs. The kernel lets go neither of a thread that waits for one
// (FUSE, once the server has taken the request), nor of the process that it belongs to, not even
// when that is killed. So it has to be another process: one that has nothing of ours open.
//
// Helpers are forked when they are needed, one for all questions as long as it answers. One that
// does not is late: it is not asked before it has answered, and another takes its place.
//
// Any thread may ask, and none waits for what another one asks another helper. The thread that
// called start() is taken for one that must not wait for long. It has a patience of its own, and
// all others share a second one. An answer costs what the helper took for it, and a quarter of the
// time in which a busy machine, or a container with a small share of the CPUs, let it not run.
// The other threads run before normal ones while they ask, as the helpers do: a helper is free when
// its answer is taken. Threads that ask about the same at once may each lose a helper.
class HelperProcesses {
 public:
  struct Answer {
    std::string bytes;  // not empty, up to kMaxAnswer_bytes
    Fd fd;              // of a file, or none
  };
  // Called in a helper. What it remembers is that helper's alone.
  using GiveAnswer = std::function<Answer(Bytes question)>;

  static constexpr size_t kMostHelpers = 8;
  // Sockets take twice as much by default (net.core.wmem_default).
  static constexpr size_t kMaxQuestion_bytes = 96 << 10;
  // A MiB and what is said of it: on a busy machine each question takes some ms, whatever it is.
  static constexpr size_t kMaxAnswer_bytes = (1 << 20) + (4 << 10);
  // Opening a file takes some turns of its server, which may be on another continent.
  static constexpr uint64_t kLongestWait_ns = 1'000'000'000;
  static constexpr uint64_t kPatienceShare = 5;
  // Nearly all answers are there by then, on a busy machine, too.
  static constexpr uint64_t kUsualWait_ns = 20'000'000;
  // The starting thread waits for a helper that answers others until their question is as old,
  // however often it asks. Rings have room for 250 ms.
  static constexpr uint64_t kLongestTurn_ns = 100'000'000;
  // More than all helpers can be late; and for a slow server to give 8 MB of unwind tables.
  static constexpr uint64_t kMostPatience_ns = 10 * kLongestWait_ns;

  // Forks, so it has to come before any thread is started. The helpers are called `name` (comm),
  // keep the signal mask, have no memory that other processes of the user could read, and run
  // before normal processes where that is permitted. `patience` is that of each asker. Errors of
  // socketpair(2), mmap(2) and fork(2).
  static Result<std::unique_ptr<HelperProcesses>> start(
      const char* name, GiveAnswer give_answer,
      Patience patience = Patience(kPatienceShare, kMostPatience_ns));
  HelperProcesses(const HelperProcesses&) = delete;
  HelperProcesses& operator=(const HelperProcesses&) = delete;
  ~HelperProcesses() { end(); }
  // The helpers end, and nothing is answered any more. Waits for their ends, so that who waits for
  // us is told of their CPU time, too (wait4(2)), but not for one that is late. Any thread, but not
  // two at once; whoever waits for an answer gets none.
  void end();

  struct Answered {
    size_t helper = 0;
    Answer answer;
  };
  // Any thread. `subject`: what the question is about, in the asker's own numbers (a file system).
  // Nothing if it takes too long, if an earlier one about the same did and still has no answer, if
  // the asker has waited too much already, and without a helper to ask. One that answers somebody
  // else is asked next if that takes no longer than usual: what it remembers may be of use.
  // `late` is set to the helper that was asked and may still do what it was asked for.
  std::optional<Answered> ask_any(Bytes question, uint64_t subject,
                                  std::optional<size_t>* late = nullptr);
  // The same, of the one that answered before. While it answers somebody else, the starting thread
  // is the next, but waits no longer than kLongestTurn_ns; others wait for kLongestWait_ns.
  std::optional<Answer> ask(size_t helper, Bytes question, uint64_t subject);

  // Whether ask() would ask it at once, as things are. Any thread.
  bool is_askable(size_t helper, uint64_t subject);
  // Whether this is the thread that called start().
  bool is_starter() const { return std::this_thread::get_id() == starter_; }
  // And with it all that it remembered; another number takes its place. Any thread.
  bool has_ended(size_t helper) const;

 private:
  // Busy: one thread waits for its answer, and alone uses its socket and room, without the lock.
  enum class State : uint8_t { Idle, Busy, Late, Ended };
  // Memory for an answer, which a helper writes and we read.
  using Room = std::shared_ptr<std::byte>;
  struct Helper {
    Fd socket{};
    Room room{};
    State state = State::Idle;
    bool is_awaited_by_starter = false;
    uint64_t subject = 0;   // of its last question
    uint64_t asked_ns = 0;  // when that was
  };
  using Lock = std::unique_lock<std::mutex>;

  explicit HelperProcesses(Patience patience) : patience_{patience, patience} {}
  Patience& patience_of_caller() { return patience_[is_starter() ? 0 : 1]; }
  void take_late_answers();
  bool is_late_about(uint64_t subject) const;
  bool may_ask(const Helper& helper, uint64_t subject) const;
  // Whether the helper is not busy, by `deadline_ns` at most.
  bool wait_for_turn(Lock& lock, Helper& helper, uint64_t deadline_ns);
  Helper* wait_for_any(Lock& lock, uint64_t begin_ns);
  bool is_free(const Helper& helper) const;  // for this thread
  // `find_helper` gives one that may be asked, or null.
  std::optional<Answered> ask_found(Bytes question, uint64_t subject,
                                    const std::function<Helper*(Lock&, uint64_t)>& find_helper,
                                    std::optional<size_t>* late);
  std::optional<Answer> ask_now(Lock& lock, Helper& helper, Bytes question, uint64_t subject);
  // Without the lock. `state`: the helper's, behind this. `taken_ns`: by the answering.
  static std::optional<Answer> wait_for_answer(const Helper& helper, Bytes question, State& state,
                                               uint64_t& taken_ns);

  mutable std::mutex mutex_;       // of all that follows; nobody waits for a helper with it
  std::condition_variable turns_;  // a helper is not busy any more
  std::array<Helper, kMostHelpers> helpers_;
  std::thread::id starter_ = std::this_thread::get_id();
  pid_t spawner_ = -1;
  bool is_over_ = false;
  // By all answers so far, as the helpers say: who waits for a turn waits for others' answers, too.
  uint64_t taken_ns_ = 0;
  std::array<Patience, 2> patience_;  // the starting thread's, and the others'
};

}  // namespace sentry_prof::os
