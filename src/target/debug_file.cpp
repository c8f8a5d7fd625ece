#include "target/debug_file.h"

#include <utility>

namespace sentry_prof::target {

Result<std::shared_ptr<const ByteSource>> DebugFile::file() {
  if (found_ && (is_open() || !may_be_asked_again(found_->error()))) return *found_;
  Found found = find_();
  silence_.clear();
  if (!found && found.error().code == ErrorCode::Io) on_silence(found.error().message);
  if (found && room_->left == 0) return found;
  if (found) --room_->left;
  found_ = found;
  return found;
}

bool DebugFile::may_be_asked_again(const Error& error) const {
  return error.code == ErrorCode::Gone || (error.code == ErrorCode::Io && !is_left_alone());
}

void DebugFile::on_silence(std::string reason) {
  silence_ = std::move(reason);
  silent_since_ns_ = now_ns_ ? now_ns_() : 0;
  pause_ns_ = pause_ns_ == 0 ? kFirstPause_ns : 2 * pause_ns_;
}

bool DebugFile::is_left_alone() const {
  return !silence_.empty() && (!now_ns_ || now_ns_() - silent_since_ns_ < pause_ns_);
}

}  // namespace sentry_prof::target
