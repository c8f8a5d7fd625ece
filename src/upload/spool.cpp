#include "upload/spool.h"

#include "base/time_units.h"
#include "os/atomic_file.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/errors.h"
#include "os/paths.h"
#include "os/random.h"
#include "os/temporary_name.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::upload {

namespace {

constexpr std::string_view kAside = ".bad";
constexpr const char* kReadAndWrite = "Name a directory that you may read and write.";
// Listing thousands of files for each one that is kept takes longer than keeping it. So many times,
// what other processes kept meanwhile may pass the limits.
constexpr uint32_t kKeepsPerListing = 100;
// And for so long: of a chunk a minute each looks.
constexpr uint64_t kLongestRoom_ns = 5 * kNsPerSecond;

[[nodiscard]] tl::unexpected<Error> fail_with_spool(int error_number, const std::string& path,
                                                    const char* next_step) {
  return fail(os::error_code_of(error_number),
              fmt::format("cannot use the spool {}: {}. {}", path, os::describe_errno(error_number),
                          next_step));
}

enum class ReadEnd { Whole, Short, Failed };

// `errno` is that of what failed.
ReadEnd read_whole(int fd, size_t size_bytes, std::string& out) {
  out.resize(size_bytes);
  size_t done = 0;
  while (done < size_bytes) {
    const ssize_t count = ::read(fd, out.data() + done, size_bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? ReadEnd::Failed : ReadEnd::Short;
    done += static_cast<size_t>(count);
  }
  return ReadEnd::Whole;
}

}  // namespace

Spool::Spool() : identity_(os::random_u64()) {}

Result<Spool> Spool::open(const std::string& directory, uint64_t destination, SpoolLimits limits) {
  if (auto ok = os::make_directory(directory, 0700); !ok) {
    return fail(ok.error().code, "cannot use the spool: " + ok.error().message);
  }
  Spool spool;
  spool.path_ = directory;
  spool.destination_ = destination;
  spool.limits_ = limits;
  if (auto ok = spool.open_directory(); !ok) return tl::unexpected(ok.error());
  return spool;
}

Result<void> Spool::open_directory() {
  os::Fd opened(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status = {};
  if (!opened.is_open() || ::fstat(opened.get(), &status) != 0) {
    return fail_with_spool(errno, path_, kReadAndWrite);
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return fail(
        ErrorCode::PermissionDenied,
        fmt::format(
            "cannot use the spool {0}: all users may write there, and what they leave would be "
            "sent. Take that away: chmod o-w {0}",
            path_));
  }
  if (!os::is_trusted_owner(status.st_uid)) {
    return fail(
        ErrorCode::PermissionDenied,
        fmt::format("cannot use the spool {}: it belongs to another user (uid {}), and what "
                    "that one leaves there would be sent. Run this as that user, or name "
                    "another place",
                    path_, status.st_uid));
  }
  // Where nothing can be removed, each run would send the same again.
  if (::faccessat(opened.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return fail_with_spool(errno, path_, kReadAndWrite);
  }
  directory_ = std::move(opened);
  remove_leftovers();
  return {};
}

// Removed and made anew, or mounted over, while a recording of months goes on. Where none took its
// place, keeping fails, and what can still be read of the old one is sent.
Result<void> Spool::reopen_if_replaced() {
  struct stat opened = {};
  struct stat named = {};
  const bool is_there = ::stat(path_.c_str(), &named) == 0;
  const bool is_same = ::fstat(directory_.get(), &opened) == 0 && opened.st_ino == named.st_ino &&
                       opened.st_dev == named.st_dev;
  if (!is_there || is_same) return {};
  room_ = {};
  done_with_.clear();
  return open_directory();
}

// Of processes that ended in the middle of keep().
void Spool::remove_leftovers() const {
  os::remove_stale_temporaries(
      directory_.get(), [](std::string_view name) { return parse_spool_name(name).has_value(); });
}

Result<std::vector<Spool::Entry>> Spool::entries() const { return entries_ending_in(""); }

Result<std::vector<Spool::Entry>> Spool::entries_ending_in(std::string_view ending) const {
  std::vector<Entry> result;
  const int error_number = os::for_each_name(directory_.get(), [&](const char* candidate) {
    const std::string_view text(candidate);
    if (!text.ends_with(ending)) return;
    const auto name = parse_spool_name(text.substr(0, text.size() - ending.size()));
    if (!name) return;
    struct stat status = {};
    if (::fstatat(directory_.get(), candidate, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    const auto size_bytes = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
    const bool is_sound = S_ISREG(status.st_mode) && size_bytes <= limits_.max_file_bytes;
    result.push_back({*name, size_bytes, is_sound});
  });
  if (error_number != 0) {
    return fail_with_spool(error_number, path_, "What is kept there cannot be listed.");
  }
  std::sort(result.begin(), result.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.name.kept_unix_ns, a.name.number) <
           std::pair(b.name.kept_unix_ns, b.name.number);
  });
  return result;
}

bool Spool::is_for_us(const Entry& entry) const {
  return destination_ == 0 || entry.name.destination == 0 || entry.name.destination == destination_;
}

SpoolCounts Spool::counts() const {
  SpoolCounts counts;
  for (const Entry& entry : entries().value_or(std::vector<Entry>())) {
    if (!is_for_us(entry)) {
      ++counts.for_others;
    } else if (!done_with_.contains(to_text(entry.name))) {
      ++counts.ours;
      if (is_own(entry.name)) ++counts.own;
    }
  }
  return counts;
}

bool Spool::is_too_old(const Entry& entry) const {
  const uint64_t now_ns = os::unix_ns();
  // A clock that was set back makes nothing old.
  return now_ns > entry.name.kept_unix_ns &&
         (now_ns - entry.name.kept_unix_ns) / kNsPerSecond > limits_.max_age_s;
}

// For writing, since NFS locks only that (flock(2)); the file of another user only for reading.
os::Fd Spool::open_to_lock(const std::string& name) const {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  os::Fd file(::openat(directory_.get(), name.c_str(), O_RDWR | kFlags));
  if (file.is_open() || errno == ENOENT) return file;
  return os::Fd(::openat(directory_.get(), name.c_str(), O_RDONLY | kFlags));
}

void Spool::note_unreadable(int error_number, const std::string& name, const char* next_step) {
  const auto failure = fail_with_spool(error_number, path_ + "/" + name, next_step);
  unreadable_ = failure.value();
}

// Open and locked, and still the file of that name: whoever had it before may have removed it.
os::Fd Spool::lock(const std::string& name) {
  os::Fd file = open_to_lock(name);
  if (!file.is_open() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error_number = errno;
    // Gone, or in somebody's hands: not our business.
    if (error_number != ENOENT && error_number != EWOULDBLOCK) {
      note_unreadable(error_number, name,
                      "It stays there unsent: mend its owner and mode, or remove it.");
    }
    return os::Fd();
  }
  struct stat opened = {};
  struct stat named = {};
  const bool is_ours =
      ::fstat(file.get(), &opened) == 0 &&
      ::fstatat(directory_.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
  return is_ours ? std::move(file) : os::Fd();
}

void Spool::count_loss(Loss loss, const SpoolName& name) {
  ++(losses_.*loss);
  if (is_own(name)) ++(own_losses_.*loss);
}

bool Spool::drop(const Entry& entry) {
  const std::string name = to_text(entry.name);
  const os::Fd file = lock(name);  // not what somebody is sending
  return file.is_open() && ::unlinkat(directory_.get(), name.c_str(), 0) == 0;
}

void Spool::set_aside(const SpoolName& name) {
  const std::string text = to_text(name);
  const std::string aside = text + std::string(kAside);
  if (::renameat(directory_.get(), text.c_str(), directory_.get(), aside.c_str()) == 0) {
    count_loss(&SpoolLosses::set_aside, name);
  }
}

// False: look first.
bool Spool::use_room(uint64_t bytes) {
  const bool is_old = os::monotonic_ns() - room_.seen_at_ns > kLongestRoom_ns;
  if (is_old || room_.keeps == 0 || room_.files == 0 || room_.bytes < bytes) return false;
  room_.bytes -= bytes;
  --room_.files;
  --room_.keeps;
  return true;
}

void Spool::make_room(uint64_t bytes) {
  if (use_room(bytes)) return;
  auto all = entries();
  if (!all) return;  // the disk will tell
  // First: a forged giant must not push out what is good.
  std::erase_if(*all, [&](const Entry& entry) {
    if (!entry.is_sound) set_aside(entry.name);
    return !entry.is_sound;
  });
  const auto aside = entries_ending_in(kAside).value_or(std::vector<Entry>());
  uint64_t total_bytes = bytes;
  uint64_t files = 1;
  for (const auto& list : {std::span(aside), std::span<const Entry>(*all)}) {
    for (const Entry& entry : list) total_bytes += entry.size_bytes;
    files += list.size();
  }
  const auto must_go = [&](const Entry& entry) {
    return is_too_old(entry) || total_bytes > limits_.max_bytes || files > limits_.max_files;
  };
  const auto is_gone = [&](const Entry& entry) {
    total_bytes -= entry.size_bytes;
    --files;
  };
  // Before anything that could still be sent. They are counted where they are set aside.
  for (const Entry& entry : aside) {
    if (!must_go(entry)) break;
    const std::string name = to_text(entry.name) + std::string(kAside);
    if (::unlinkat(directory_.get(), name.c_str(), 0) == 0) is_gone(entry);
  }
  for (const Entry& entry : *all) {
    if (!must_go(entry)) break;
    if (!drop(entry)) continue;
    count_loss(is_too_old(entry) ? &SpoolLosses::dropped_for_age : &SpoolLosses::dropped_for_size,
               entry.name);
    is_gone(entry);
  }
  room_ = {limits_.max_bytes - std::min(total_bytes, limits_.max_bytes),
           limits_.max_files - std::min(files, limits_.max_files), kKeepsPerListing,
           os::monotonic_ns()};
}

Result<std::string> Spool::keep(std::string_view body, BodyEncoding encoding,
                                Categories categories) {
  if (body.size() > limits_.max_file_bytes || body.size() > limits_.max_bytes) {
    return fail(
        ErrorCode::LimitExceeded,
        fmt::format("an envelope of {} bytes is too large for the spool {}", body.size(), path_));
  }
  if (categories.empty()) return fail(ErrorCode::InvalidArgument, "an envelope without a category");
  if (auto ok = reopen_if_replaced(); !ok) return tl::unexpected(ok.error());
  make_room(body.size());
  SpoolName name;
  name.kept_unix_ns = os::unix_ns();
  name.number = next_number_++;
  name.identity = identity_;
  name.checksum = checksum_of(body);
  name.destination = destination_;
  name.categories = categories;
  name.encoding = encoding;
  std::string text = to_text(name);
  auto file = os::AtomicFile::create(path_ + "/" + text, os::AtomicFile::Leftovers::Ignore);
  if (!file) return tl::unexpected(std::move(file.error()));
  if (auto written = file->write(body); !written) return tl::unexpected(written.error());
  // There, but perhaps not for long: the caller is told that it is not kept, so it must not be
  // sent.
  if (auto committed = file->commit(); !committed) {
    ::unlinkat(directory_.get(), text.c_str(), 0);
    return tl::unexpected(committed.error());
  }
  return text;
}

std::optional<SpooledEnvelope> Spool::take(const Entry& entry) {
  SpooledEnvelope envelope;
  envelope.name = to_text(entry.name);
  envelope.lock = lock(envelope.name);
  if (!envelope.lock.is_open()) return std::nullopt;
  // What was listed may not be what was opened: kind and size count again.
  struct stat status = {};
  if (::fstat(envelope.lock.get(), &status) != 0) return std::nullopt;
  const auto size_bytes = static_cast<size_t>(std::max<off_t>(status.st_size, 0));
  const bool may_be_read = S_ISREG(status.st_mode) && size_bytes <= limits_.max_file_bytes;
  const ReadEnd end =
      may_be_read ? read_whole(envelope.lock.get(), size_bytes, envelope.body) : ReadEnd::Short;
  if (end == ReadEnd::Failed) {
    note_unreadable(errno, envelope.name, "It stays there unsent: look after the disk.");
    return std::nullopt;
  }
  if (end == ReadEnd::Short || checksum_of(envelope.body) != entry.name.checksum) {
    set_aside(entry.name);
    return std::nullopt;
  }
  envelope.encoding = entry.name.encoding;
  envelope.categories = entry.name.categories;
  envelope.is_own = is_own(entry.name);
  return envelope;
}

std::optional<SpooledEnvelope> Spool::offer(const Entry& entry, const Wanted& is_wanted) {
  if (!entry.is_sound) {
    set_aside(entry.name);
  } else if (!is_for_us(entry)) {
    return std::nullopt;
  } else if (is_too_old(entry)) {
    if (drop(entry)) count_loss(&SpoolLosses::dropped_for_age, entry.name);
  } else if ((!is_wanted || is_wanted(entry.name.categories))) {
    return take(entry);
  }
  return std::nullopt;
}

Result<void> Spool::rewind() {
  if (auto ok = reopen_if_replaced(); !ok) return ok;
  auto all = entries();
  if (!all) return tl::unexpected(std::move(all.error()));
  listed_ = std::move(*all);
  next_listed_ = 0;
  unreadable_.reset();
  return {};
}

std::optional<SpooledEnvelope> Spool::take_next(const Wanted& is_wanted) {
  while (next_listed_ < listed_.size()) {
    const Entry& entry = listed_[next_listed_++];
    if (done_with_.contains(to_text(entry.name))) continue;
    if (auto envelope = offer(entry, is_wanted)) return envelope;
  }
  return std::nullopt;
}

std::optional<SpooledEnvelope> Spool::take_newest(const Wanted& is_wanted) {
  while (next_listed_ < listed_.size()) {
    const Entry entry = listed_.back();
    listed_.pop_back();
    if (done_with_.contains(to_text(entry.name))) continue;
    if (auto envelope = offer(entry, is_wanted)) return envelope;
  }
  return std::nullopt;
}

Result<void> Spool::remove(SpooledEnvelope envelope) {
  if (::unlinkat(directory_.get(), envelope.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  const int error_number = errno;
  done_with_.insert(envelope.name);
  return fail_with_spool(error_number, path_,
                         "What was sent stays there; another run would send it again.");
}

}  // namespace sentry_prof::upload
