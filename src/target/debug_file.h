// The separate file with what was stripped from an image: symbols, and unwind tables that are not
// loaded.
#pragma once

#include "base/byte_source.h"
#include "sentry_prof/result.h"

#include <functional>
#include <memory>
#include <optional>

namespace sentry_prof::target {

// Looked for when it is first asked for. Recording thread only; what it gives is for any thread.
class DebugFile {
 public:
  // Finds the debug file of an image's build id, which it proves. NotFound is no problem, nor is
  // Gone: nobody is left in whose root directory it could be looked for, but another process may
  // come.
  using Find = std::function<Result<std::shared_ptr<const ByteSource>>()>;

  // Without `find` there is none.
  explicit DebugFile(Find find = {}) : find_(std::move(find)) {}

  Result<std::shared_ptr<const ByteSource>> file() {
    if (!find_) return fail(ErrorCode::NotFound, "it has no build id");
    if (!found_ || is_gone(*found_)) found_ = find_();
    return *found_;
  }
  // It stays open no longer.
  void forget() {
    find_ = {};
    found_.reset();
  }

 private:
  using Found = Result<std::shared_ptr<const ByteSource>>;
  static bool is_gone(const Found& found) {
    return !found && found.error().code == ErrorCode::Gone;
  }

  Find find_;
  std::optional<Found> found_;
};

}  // namespace sentry_prof::target
