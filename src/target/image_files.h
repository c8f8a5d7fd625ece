// Opening what holds an image, wherever it was found (the Linux half).
#pragma once

#include "base/byte_source.h"
#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <memory>

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

// This process's own vdso, if it is of this size. Our own is everybody's: the kernel has one. Of
// another size is only that of a 32-bit process, or of another kernel.
Result<std::shared_ptr<const ByteSource>> copy_own_vdso(uint64_t size_bytes);

}  // namespace sentry_prof::target
