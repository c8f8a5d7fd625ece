// The target's files, asked for without waiting for ever (the Linux half).
#pragma once

#include "sentry_prof/result.h"
#include "target/file_helpers.h"
#include "target/file_server.h"
#include "target/image_opener.h"
#include "target/jit_map.h"
#include "target/recent_pieces.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sentry_prof::target {

// A file may lie on a file system whose server hangs, or is the target itself. So processes of our
// own open them (FileHelpers), and read those for which a server has to be asked. What takes too
// long fails, with ErrorCode::Io, and is counted. Any thread may call; what it gives is for any
// thread, and may outlive it.
class TargetFiles {
 public:
  // Forks: before any thread is started, and by the one that is to record (it waits less long for
  // others' requests: os::HelperProcesses). Errors as those of os::HelperProcesses::start().
  static Result<std::shared_ptr<TargetFiles>> start(
      FileServer::MayPass may_pass = is_read_without_asking);

  // As make_proc_opener(). LimitExceeded also if few descriptors are left.
  std::unique_ptr<ImageOpener> make_opener();
  // As JitMapFinder::open(); a helper that takes the place of a late one knows no places.
  Result<JitMap> find_jit_map(uint32_t pid, uint64_t program_begin_ns);
  // As os::is_same_file(); nothing if that takes too long.
  std::optional<bool> is_same_file(const std::string& path, const std::string& other);

  // What others than the caller of start() have to call now and then: what that one does not need
  // any more stays open until it can be closed without its waiting.
  void close_unneeded() { helpers_->close_unneeded(); }

  // Ends the processes; what is asked from now on gets no answer. Part of the end of this and of
  // all that it gave.
  void end() { helpers_->end(); }

  // Requests that took too long, or were not made because others had.
  uint64_t requests_given_up() const { return helpers_->given_up(); }

 private:
  explicit TargetFiles(std::shared_ptr<FileHelpers> helpers) : helpers_(std::move(helpers)) {}

  std::shared_ptr<FileHelpers> helpers_;
  std::shared_ptr<RecentPieces> pieces_ = std::make_shared<RecentPieces>();
};

}  // namespace sentry_prof::target
