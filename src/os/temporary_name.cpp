#include "os/temporary_name.h"

#include "os/clock.h"
#include "os/fd.h"

#include <cerrno>
#include <charconv>
#include <memory>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

constexpr std::string_view kEnding = ".sentry-prof-tmp";
// NAME_MAX is 255; pid, random part, dots and ending take up to 46.
constexpr size_t kMaxKept_bytes = 200;

uint64_t random_u64() {
  uint64_t value = 0;
  // getrandom gives up to 256 bytes whole; without it (seccomp) O_EXCL still keeps names apart.
  if (::getrandom(&value, sizeof(value), 0) != sizeof(value)) value = monotonic_ns();
  return value;
}

std::string prefix_of(std::string_view name) {
  return fmt::format(".{}.", name.substr(0, kMaxKept_bytes));
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// The lock tells of a living owner in another PID namespace, where our kill() cannot see it.
bool is_abandoned(int directory_fd, const char* name, pid_t owner) {
  if (::kill(owner, 0) == 0 || errno != ESRCH) return false;
  const Fd file(
      ::openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  return file.is_open() && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

std::string make_temporary_name(std::string_view name) {
  return fmt::format("{}{}-{:016x}{}", prefix_of(name), ::getpid(), random_u64(), kEnding);
}

std::optional<pid_t> owner_of_temporary(std::string_view candidate, std::string_view name) {
  const std::string prefix = prefix_of(name);
  if (!candidate.starts_with(prefix) || !candidate.ends_with(kEnding)) return std::nullopt;
  if (candidate.size() < prefix.size() + kEnding.size()) return std::nullopt;
  candidate.remove_prefix(prefix.size());
  candidate.remove_suffix(kEnding.size());
  pid_t pid = 0;
  const char* end = candidate.data() + candidate.size();
  const auto [after_pid, error] = std::from_chars(candidate.data(), end, pid);
  if (error != std::errc() || pid <= 0 || after_pid == end || *after_pid != '-')
    return std::nullopt;
  const std::string_view random(after_pid + 1, static_cast<size_t>(end - after_pid - 1));
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  if (random.size() != 16 || random.find_first_not_of(kHexDigits) != random.npos) {
    return std::nullopt;
  }
  return pid;
}

void remove_stale_temporaries(int directory_fd, std::string_view name) {
  const int listing_fd = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listing_fd < 0) return;
  const std::unique_ptr<DIR, CloseDirectory> listing(::fdopendir(listing_fd));
  if (listing == nullptr) {
    ::close(listing_fd);
    return;
  }
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::optional<pid_t> owner = owner_of_temporary(entry->d_name, name);
    if (owner && is_abandoned(directory_fd, entry->d_name, *owner)) {
      ::unlinkat(directory_fd, entry->d_name, 0);
    }
  }
}

}  // namespace sentry_prof::os
