// Processes of our own for what may take for ever.
#pragma once

#include "base/byte_reader.h"
#include "os/fd.h"
#include "os/patience.h"
#include "sentry_prof/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <sys/types.h>

namespace sentry_prof::os {

// Asking a server of files that hangs. The kernel lets go neither of a thread that waits for one
// (FUSE, once the server has taken the request), nor of the process that it belongs to, not even
// when that is killed. So it has to be another process: one that has nothing of ours open.
//
// Helpers are forked when they are needed, one for all questions as long as it answers. One that
// does not is late: it is not asked before it has answered, and another takes its place.
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
  // More than all helpers can be late; and for a slow server to give 8 MB of unwind tables.
  static constexpr uint64_t kMostPatience_ns = 10 * kLongestWait_ns;

  // Forks, so it has to come before any thread is started. The helpers are called `name` (comm),
  // keep the signal mask, have no memory that other processes of the user could read, and run
  // before normal processes where that is permitted. Errors of socketpair(2), mmap(2) and fork(2).
  static Result<std::unique_ptr<HelperProcesses>> start(const char* name, GiveAnswer give_answer);
  HelperProcesses(const HelperProcesses&) = delete;
  HelperProcesses& operator=(const HelperProcesses&) = delete;
  ~HelperProcesses() { end(); }
  // The helpers end, and nothing is answered any more. Waits for their ends, so that who waits for
  // us is told of their CPU time, too (wait4(2)), but not for one that is late.
  void end();

  struct Answered {
    size_t helper = 0;
    Answer answer;
  };
  // Any thread; one at a time is answered. `subject`: what the question is about, in the asker's
  // own numbers (a file system). Nothing if it takes too long, if an earlier one about the same did
  // and still has no answer, if we have waited too much already, and without a helper that is not
  // late.
  std::optional<Answered> ask_any(Bytes question, uint64_t subject);
  // The same, of the one that answered before.
  std::optional<Answer> ask(size_t helper, Bytes question, uint64_t subject);

  // Questions that got no answer, or were not asked therefore.
  uint64_t given_up() const;

 private:
  enum class State : uint8_t { Idle, Late, Ended };
  // Memory for an answer, which a helper writes and we read.
  using Room = std::shared_ptr<std::byte>;
  struct Helper {
    Fd socket{};
    Room room{};
    State state = State::Idle;
    uint64_t subject = 0;  // of its last question
  };

  HelperProcesses() = default;
  void take_late_answers();
  bool may_ask(const Helper& helper, uint64_t subject) const;
  std::optional<Answer> ask_now(Helper& helper, Bytes question, uint64_t subject);
  std::optional<Answer> wait_for_answer(Helper& helper, Bytes question);

  mutable std::mutex mutex_;
  std::array<Helper, kMostHelpers> helpers_;
  pid_t spawner_ = -1;
  Patience patience_{kPatienceShare, kMostPatience_ns};
  uint64_t given_up_ = 0;
};

}  // namespace sentry_prof::os
