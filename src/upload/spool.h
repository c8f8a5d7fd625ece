// Envelopes on disk until a server has taken them: a crash, a reboot or a day without network loses
// none.
//
// A directory of files whose names say what they hold (spool_name.h). Each is written whole, synced
// and renamed, and removed only when the caller says so. Several processes may share a directory:
// an envelope is in one of them's hands at a time, under a lock that ends with its process. Names
// are matched strictly, no link is followed, and what is damaged is set aside as "NAME.bad", within
// the limits of the rest and the first to go; foreign files are left alone. What was kept for
// another destination (another project's, or server's) is neither offered nor counted, but within
// the limits of the rest.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"
#include "upload/body_encoding.h"
#include "upload/rate_limits.h"
#include "upload/spool_name.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::upload {

struct SpoolLimits {
  uint64_t max_bytes = 512 * 1024 * 1024;
  uint64_t max_age_s = 7 * 24 * 60 * 60;  // Sentry takes no data much older
  uint64_t max_files = 10'000;            // a week of chunks of 60 s
  uint64_t max_file_bytes = 64 * 1024 * 1024;
};

// What a spool gave up or set aside since it was opened by this process.
struct SpoolLosses {
  uint64_t dropped_for_size = 0;  // the oldest, to make room
  uint64_t dropped_for_age = 0;
  uint64_t set_aside = 0;  // damaged, or no file

  SpoolLosses& operator+=(const SpoolLosses& other) {
    dropped_for_size += other.dropped_for_size;
    dropped_for_age += other.dropped_for_age;
    set_aside += other.set_aside;
    return *this;
  }
  uint64_t dropped() const { return dropped_for_size + dropped_for_age; }
};

struct SpoolCounts {
  size_t ours = 0;        // for this spool's destination
  size_t own = 0;         // of these, kept by this run
  size_t for_others = 0;  // for other destinations
};

// An envelope that this process has to itself until the object goes.
struct SpooledEnvelope {
  std::string name;
  std::string body;
  BodyEncoding encoding = BodyEncoding::Identity;
  Categories categories;
  bool is_own = false;  // kept by this run, see Spool::is_one_with
  os::Fd lock;          // the open file
};

class Spool {
 public:
  // Makes the directory (0700; under sudo the user's) if it is not there, not those above it.
  // PermissionDenied if all users may write to it, or if it belongs to another one but root: what
  // they put there would be sent with our key; also if this process may not write to it: what is
  // sent could not be removed. NotFound, Io with the path and the next step.
  // `destination` (destination_of) is written to what is kept; 0: of anybody, for anybody.
  static Result<Spool> open(const std::string& directory, uint64_t destination = 0,
                            SpoolLimits limits = {});

  // Keeps an envelope and returns its name: on disk when this returns. The oldest are dropped first
  // where the limits ask for it. LimitExceeded if it is larger than max_file_bytes by itself; Io if
  // the disk refuses.
  Result<std::string> keep(std::string_view body, BodyEncoding encoding, Categories categories);

  // From now on what `other` keeps is this one's own, too: a run may have a hand to keep and one to
  // send.
  void is_one_with(const Spool& other) { identity_ = other.identity_; }

  // By what its name tells.
  using Wanted = std::function<bool(Categories)>;

  // Lists what is there now, for take_next(). Io if the directory cannot be read. Here and in
  // keep() a directory that has taken its place is opened like the first; errors as those of
  // open().
  Result<void> rewind();
  // The next envelope since rewind(), towards the newest, that no other process has; nothing behind
  // the last. What is too old is dropped on the way, what is damaged set aside, what cannot be
  // opened or locked passed over: see unreadable(). What `is_wanted` does not want is not opened.
  std::optional<SpooledEnvelope> take_next(const Wanted& is_wanted = {});
  // The same from the other end: the newest that was not taken yet.
  std::optional<SpooledEnvelope> take_newest(const Wanted& is_wanted = {});
  // The server has it, or will never take it. Where the disk refuses (that is returned) this object
  // does not offer it again.
  Result<void> remove(SpooledEnvelope envelope);

  // Envelopes there now, those in other processes' hands included, those that remove() was called
  // for not.
  SpoolCounts counts() const;
  // Whether what was sent could not be removed, and lies there still.
  bool has_sent_ones() const { return !done_with_.empty(); }
  // Why the last one that could not be opened or locked since rewind() could not.
  const std::optional<Error>& unreadable() const { return unreadable_; }
  const SpoolLosses& losses() const { return losses_; }
  // Of those the ones that were kept by this run.
  const SpoolLosses& own_losses() const { return own_losses_; }

 private:
  struct Entry {
    SpoolName name;
    uint64_t size_bytes = 0;
    bool is_sound = false;  // a regular file within the limit of one
  };

  // What may still be kept without looking, as far as this process knows.
  struct Room {
    uint64_t bytes = 0;
    uint64_t files = 0;
    uint32_t keeps = 0;       // until the directory is looked at again
    uint64_t seen_at_ns = 0;  // monotonic
  };

  Spool();
  Result<void> open_directory();
  Result<void> reopen_if_replaced();
  bool is_for_us(const Entry& entry) const;
  Result<std::vector<Entry>> entries() const;  // the oldest first
  // Those whose names have `ending` behind what spool_name.h says.
  Result<std::vector<Entry>> entries_ending_in(std::string_view ending) const;
  bool use_room(uint64_t bytes);
  void make_room(uint64_t bytes);
  std::optional<SpooledEnvelope> offer(const Entry& entry, const Wanted& is_wanted);
  bool is_too_old(const Entry& entry) const;
  bool is_own(const SpoolName& name) const { return name.identity == identity_; }
  using Loss = uint64_t SpoolLosses::*;
  void count_loss(Loss loss, const SpoolName& name);
  bool drop(const Entry& entry);
  void set_aside(const SpoolName& name);
  void note_unreadable(int error_number, const std::string& name, const char* next_step);
  os::Fd lock(const std::string& name);
  os::Fd open_to_lock(const std::string& name) const;
  std::optional<SpooledEnvelope> take(const Entry& entry);
  void remove_leftovers() const;

  std::string path_;
  os::Fd directory_;
  uint64_t destination_ = 0;
  SpoolLimits limits_;
  SpoolLosses losses_, own_losses_;
  uint64_t identity_;
  uint64_t next_number_ = 0;
  Room room_;
  std::vector<Entry> listed_;
  size_t next_listed_ = 0;
  std::set<std::string, std::less<>> done_with_;  // but still there
  std::optional<Error> unreadable_;
};

}  // namespace sentry_prof::upload
