// The separate file with what was stripped from an image: symbols, and unwind tables that are not
// loaded.
#pragma once

#include "base/byte_source.h"
#include "sentry_prof/result.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
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
  // Finds the debug file of an image's build id, which it proves. NotFound is no problem, nor is
  // Gone: nobody is left in whose root directory it could be looked for, but another process may
  // come. Who was asked is not asked again: what is not kept is gone.
  using Find = std::function<Result<std::shared_ptr<const ByteSource>>()>;

  DebugFile(Find find, std::shared_ptr<DebugFileRoom> room)
      : find_(std::move(find)), room_(std::move(room)) {}
  DebugFile(const DebugFile&) = delete;
  DebugFile& operator=(const DebugFile&) = delete;
  ~DebugFile() {
    if (is_open()) ++room_->left;
  }

  // It stays open if there is room.
  Result<std::shared_ptr<const ByteSource>> file() {
    if (found_ && !is_gone(*found_)) return *found_;
    Found found = find_();
    if (found && room_->left == 0) return found;
    if (found) --room_->left;
    found_ = found;
    return found;
  }
  // Whether it is open, or could stay so.
  bool may_be_kept() const { return is_open() || room_->left > 0; }

 private:
  using Found = Result<std::shared_ptr<const ByteSource>>;
  static bool is_gone(const Found& found) {
    return !found && found.error().code == ErrorCode::Gone;
  }
  bool is_open() const { return found_ && found_->has_value(); }

  Find find_;
  std::shared_ptr<DebugFileRoom> room_;
  std::optional<Found> found_;
};

}  // namespace sentry_prof::target
