#include "os/directory.h"

#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

int for_each_name(int directory_fd, const std::function<void(const char* name)>& visit) {
  // Not dup(): duplicates share a position.
  const int listing_fd = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listing_fd < 0) return errno;
  const std::unique_ptr<DIR, CloseDirectory> listing(::fdopendir(listing_fd));
  if (listing == nullptr) {
    const int error_number = errno;
    ::close(listing_fd);
    return error_number;
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr) return errno;
    visit(entry->d_name);
  }
}

}  // namespace sentry_prof::os
