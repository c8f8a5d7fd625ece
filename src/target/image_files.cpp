#include "target/image_files.h"

#include "base/time_units.h"
#include "os/errors.h"
#include "os/file.h"
#include "target/mapping_kind.h"
#include "target/proc.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace sentry_prof::target {

uint64_t to_unix_ns(const struct statx_timestamp& time) {
  return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond + time.tv_nsec;
}

std::optional<FileFacts> facts_of(const os::Fd& found) {
  struct statx status = {};
  constexpr unsigned kWanted = STATX_INO | STATX_MTIME | STATX_BTIME;
  if (::statx(found.get(), "", AT_EMPTY_PATH, kWanted, &status) != 0) return std::nullopt;
  FileFacts facts{status.stx_dev_major, status.stx_dev_minor, status.stx_ino,
                  to_unix_ns(status.stx_mtime)};
  if ((status.stx_mask & STATX_BTIME) != 0) {
    facts.changed_unix_ns = std::max(facts.changed_unix_ns, to_unix_ns(status.stx_btime));
  }
  return facts;
}

namespace {

// Descriptors kept free for what is written at the end.
constexpr uint64_t kReservedDescriptors = 16;

}  // namespace

bool leaves_too_few_descriptors(int fd) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<uint64_t>(fd) + kReservedDescriptors >= limit.rlim_cur;
}

tl::unexpected<Error> too_many_files() {
  return fail(ErrorCode::LimitExceeded, "too many open files (raise the limit: ulimit -n)");
}

Result<os::Fd> reopen_regular_file(const os::Fd& found) {
  struct stat status = {};
  if (::fstat(found.get(), &status) != 0) return os::fail_with_errno(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::Unsupported, "not a regular file");
  os::Fd file(::open(fmt::format("/proc/self/fd/{}", found.get()).c_str(),
                     O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.is_open()) return os::fail_with_errno(errno, "cannot be read");
  if (leaves_too_few_descriptors(file.get())) return too_many_files();
  return file;
}

Result<std::shared_ptr<const ByteSource>> open_regular_file(const os::Fd& found) {
  auto file = reopen_regular_file(found);
  if (!file) return tl::unexpected(std::move(file.error()));
  auto bytes = os::FileByteSource::adopt(std::move(*file), os::FileByteSource::Changes::Refused);
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  return std::shared_ptr<const ByteSource>(std::move(*bytes));
}

Result<std::shared_ptr<const ByteSource>> copy_own_vdso(uint64_t size_bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(::getauxval(AT_SYSINFO_EHDR));
  const auto maps = os::read_small_file("/proc/self/maps");
  if (begin == nullptr || !maps) return fail(ErrorCode::NotFound, "no vdso in this process");
  for (const MappingFacts& own : parse_maps(*maps, 0)) {
    if (own.path != kVdsoPath || own.begin.value != reinterpret_cast<uint64_t>(begin)) continue;
    if (own.size_bytes != size_bytes) break;
    return std::make_shared<MemoryByteSource>(std::vector<std::byte>(begin, begin + size_bytes));
  }
  return fail(ErrorCode::Unsupported, "not the vdso of this kernel's 64-bit programs");
}

}  // namespace sentry_prof::target
