// A disk that fails when a file is committed, or read: nothing less than a broken one does that by
// itself.
#pragma once

#include <cstdint>

namespace sentry_prof::test {

enum class DiskCall : uint8_t {
  None,
  SyncFile,
  Rename,
  SyncDirectory,
  Read,
};

// While it lives, each such call of this program is answered with EIO, on all threads.
class FailingDisk {
 public:
  explicit FailingDisk(DiskCall call);
  ~FailingDisk();
  FailingDisk(const FailingDisk&) = delete;
  FailingDisk& operator=(const FailingDisk&) = delete;
};

}  // namespace sentry_prof::test
