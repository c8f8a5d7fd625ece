#include "unit/upload/failing_disk.h"

#include <atomic>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sentry_prof::test {

namespace {

std::atomic<DiskCall> g_failing = DiskCall::None;

bool fails(DiskCall call) {
  if (g_failing != call) return false;
  errno = EIO;
  return true;
}

bool is_directory(int fd) {
  struct stat facts = {};
  return ::fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode);
}

}  // namespace

FailingDisk::FailingDisk(DiskCall call) { g_failing = call; }
FailingDisk::~FailingDisk() { g_failing = DiskCall::None; }

}  // namespace sentry_prof::test

// The linker takes these of the program before the C library's.

extern "C" int fsync(int fd) {
  using namespace sentry_prof::test;
  if (fails(is_directory(fd) ? DiskCall::SyncDirectory : DiskCall::SyncFile)) return -1;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" ssize_t read(int fd, void* buffer, size_t size_bytes) {
  using namespace sentry_prof::test;
  if (fails(DiskCall::Read)) return -1;
  return ::syscall(SYS_read, fd, buffer, size_bytes);
}

extern "C" int renameat(int old_directory, const char* old_name, int new_directory,
                        const char* new_name) noexcept {
  using namespace sentry_prof::test;
  if (fails(DiskCall::Rename)) return -1;
  return static_cast<int>(
      ::syscall(SYS_renameat2, old_directory, old_name, new_directory, new_name, 0));
}
