#include "os/temporary_name.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/fd.h"
#include "os/random.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

constexpr std::string_view kEnding = ".sentry-prof-tmp";
// NAME_MAX is 255; pid, random part, dots and ending take up to 46.
constexpr size_t kMaxKept_bytes = 200;

std::string_view kept_of(std::string_view name) { return name.substr(0, kMaxKept_bytes); }

// The pid in "PID-RANDOM".
std::optional<pid_t> parse_owner(std::string_view text) {
  pid_t pid = 0;
  const char* end = text.data() + text.size();
  const auto [after_pid, error] = std::from_chars(text.data(), end, pid);
  if (error != std::errc() || pid <= 0 || after_pid == end || *after_pid != '-')
    return std::nullopt;
  const std::string_view random(after_pid + 1, static_cast<size_t>(end - after_pid - 1));
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  if (random.size() != 16 || random.find_first_not_of(kHexDigits) != random.npos) {
    return std::nullopt;
  }
  return pid;
}

// An owner locks its file as soon as it has made it.
constexpr uint64_t kSurelyLocked_ns = 60 * kNsPerSecond;

bool is_old(const struct stat& file) {
  const uint64_t written_s = static_cast<uint64_t>(std::max<time_t>(file.st_mtime, 0));
  return unix_ns() / kNsPerSecond > written_s + kSurelyLocked_ns / kNsPerSecond;
}

// The lock tells of a living owner in another PID namespace, where our kill() cannot see it; and of
// one that was killed in a container, where each has the same pid.
bool is_abandoned(int directory_fd, const char* name, pid_t owner) {
  const bool owner_is_gone = ::kill(owner, 0) != 0 && errno == ESRCH;
  const Fd file(
      ::openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status = {};
  return file.is_open() && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         (owner_is_gone || is_old(status)) && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

std::string make_temporary_name(std::string_view name) {
  return fmt::format(".{}.{}-{:016x}{}", kept_of(name), ::getpid(), random_u64(), kEnding);
}

std::optional<TemporaryName> parse_temporary(std::string_view candidate) {
  if (!candidate.starts_with('.') || !candidate.ends_with(kEnding)) return std::nullopt;
  candidate.remove_suffix(kEnding.size());
  const size_t dot = candidate.rfind('.');  // a name may have dots, what follows it has none
  if (dot == candidate.npos || dot < 2) return std::nullopt;
  const auto owner = parse_owner(candidate.substr(dot + 1));
  if (!owner) return std::nullopt;
  return TemporaryName{candidate.substr(1, dot - 1), *owner};
}

void remove_stale_temporaries(int directory_fd,
                              const std::function<bool(std::string_view name)>& is_ours) {
  for_each_name(directory_fd, [&](const char* candidate) {
    const auto temporary = parse_temporary(candidate);
    if (temporary && is_ours(temporary->name) &&
        is_abandoned(directory_fd, candidate, temporary->owner)) {
      ::unlinkat(directory_fd, candidate, 0);
    }
  });
}

void remove_stale_temporaries(int directory_fd, std::string_view name) {
  remove_stale_temporaries(directory_fd,
                           [&](std::string_view other) { return other == kept_of(name); });
}

}  // namespace sentry_prof::os
