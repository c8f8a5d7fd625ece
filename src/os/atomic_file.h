// Files that are whole or not there.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sentry_prof::os {

// A file in the making: a temporary in the same directory (O_EXCL|O_NOFOLLOW, 0600, owned by
// SUDO_UID under sudo), which commit() syncs and renames. Dropped without commit it leaves nothing.
// After a failed write or commit the temporary is gone, and every further call fails.
class AtomicFile {
 public:
  enum class Leftovers : uint8_t {
    Remove,  // temporaries that ended runs left for the same path
    Ignore,  // spares reading the directory, where no path is written twice
  };
  // NotFound, PermissionDenied, Io with the path and the next step. Refuses a target that is a
  // directory, FIFO or device. Follows no symbolic link: the rename replaces the link.
  static Result<AtomicFile> create(const std::string& path,
                                   Leftovers leftovers = Leftovers::Remove);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;
  ~AtomicFile();

  Result<void> write(std::string_view bytes);
  Result<void> commit();

 private:
  AtomicFile() = default;
  void discard();
  [[nodiscard]] tl::unexpected<Error> give_up(int error_number, uint64_t wanted_bytes);

  Fd directory_;
  Fd file_;
  std::string path_, name_, temporary_name_;
  uint64_t written_bytes_ = 0;
};

// Whether a file could be written at `path`, told before a recording begins. Probes with a
// temporary.
Result<void> check_writable(const std::string& path);

// Makes the directory (`mode` less the umask) unless something of that name is there; not those
// above it. Under sudo it belongs to SUDO_UID. On disk when this returns, as far as the file system
// can say so. Errors as those of AtomicFile::create.
Result<void> make_directory(const std::string& path, unsigned mode = 0777);

}  // namespace sentry_prof::os
