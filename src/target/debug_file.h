// The separate file with what was stripped from an image: symbols, and unwind tables that are not
// loaded.
#pragma once

#include "base/byte_source.h"
#include "sentry_prof/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace sentry_prof::target {

// How many debug files may be open beside their images. Events leave 128 descriptors to the rest of
// the program (sampling/file_budget.h), of which images need most.
struct DebugFileRoom {
  size_t left = 64;
};

// Looked for when it is first asked for. Recording thread only; what it gives is for any thread.
class DebugFile {
 public:
  // Who did not answer is left alone for so long, each further time for twice as long: to ask again
  // may cost the thread a second.
  static constexpr uint64_t kFirstPause_ns = 1'000'000'000;
  // After some more an answer is not to be counted on any more.
  static constexpr uint64_t kLongPause_ns = 64 * kFirstPause_ns;

  // Finds the debug file of an image's build id, which it proves. NotFound is no problem, nor is
  // Gone: nobody is left in whose root directory it could be looked for, but another process may
  // come. Who has answered is not asked again: what is not kept is gone. Io: nobody answered.
  using Find = std::function<Result<std::shared_ptr<const ByteSource>>()>;
  using Clock = std::function<uint64_t()>;  // in ns, and never set

  // Without a clock who did not answer is left alone for good.
  DebugFile(Find find, std::shared_ptr<DebugFileRoom> room, Clock now_ns = {})
      : find_(std::move(find)), room_(std::move(room)), now_ns_(std::move(now_ns)) {}
  DebugFile(const DebugFile&) = delete;
  DebugFile& operator=(const DebugFile&) = delete;
  ~DebugFile() {
    if (is_open()) ++room_->left;
  }

  // It stays open if there is room. Errors as those of Find, the last one while nobody is asked.
  Result<std::shared_ptr<const ByteSource>> file();
  // What file() gave could not be read, because nobody answered.
  void on_silence(std::string reason);
  // Nobody answered, and it is too soon to ask again.
  bool is_left_alone() const;
  // The same, but before long it is not.
  bool may_answer_soon() const { return now_ns_ && pause_ns_ < kLongPause_ns && is_left_alone(); }
  // Why nobody answered; empty if somebody did since.
  const std::string& silence() const { return silence_; }
  // Whether it is open, or could stay so.
  bool may_be_kept() const { return is_open() || room_->left > 0; }

 private:
  using Found = Result<std::shared_ptr<const ByteSource>>;
  bool may_be_asked_again(const Error& error) const;
  bool is_open() const { return found_ && found_->has_value(); }

  Find find_;
  std::shared_ptr<DebugFileRoom> room_;
  std::optional<Found> found_;
  Clock now_ns_;
  std::string silence_;
  uint64_t silent_since_ns_ = 0;
  uint64_t pause_ns_ = 0;  // since then; 0: there was none so far
};

}  // namespace sentry_prof::target
