// Opening what holds an image, wherever it was found (the Linux half).
#pragma once

#include "base/byte_source.h"
#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <memory>
#include <optional>

#include <sys/stat.h>

namespace sentry_prof::target {

// Opens for reading what an O_PATH descriptor found, once it is known to be a regular file: nothing
// else is opened, which might block or have effects. Unsupported: another kind of file.
// LimitExceeded: too_many_files(). Else by errno.
Result<os::Fd> reopen_regular_file(const os::Fd& found);
// The same as bytes of an image: of one that is written to afterwards nothing more is read.
Result<std::shared_ptr<const ByteSource>> open_regular_file(const os::Fd& found);

// Whether few descriptors are left if this is the highest: those that the end of a recording takes
// are kept free.
bool leaves_too_few_descriptors(int fd);
[[nodiscard]] tl::unexpected<Error> too_many_files();

// Of a file's times.
uint64_t to_unix_ns(const struct statx_timestamp& time);

// What tells a file from others where there is no build id.
struct FileFacts {
  uint32_t device_major = 0, device_minor = 0;  // on btrfs and overlayfs another than maps tell
  uint64_t inode = 0;
  // When it became what it is. Not st_ctime: perf links what it sampled into its cache, which
  // changes that. An inode that was freed and given to another file is told by its birth, where the
  // file system has one: installing sets the time of modification back.
  uint64_t changed_unix_ns = 0;
};
// None, with errno, if the kernel does not say.
std::optional<FileFacts> facts_of(const os::Fd& found);

// This process's own vdso, if it is of this size. Our own is everybody's: the kernel has one. Of
// another size is only that of a 32-bit process, or of another kernel.
Result<std::shared_ptr<const ByteSource>> copy_own_vdso(uint64_t size_bytes);

}  // namespace sentry_prof::target
