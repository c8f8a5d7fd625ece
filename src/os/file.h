// Files: reading what others own, writing what is whole or not there.
#pragma once

#include "base/byte_source.h"
#include "os/errors.h"
#include "os/fd.h"
#include "sentry_prof/result.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sentry_prof::os {

// Reads by pread, never maps: a truncation under our feet must not kill us.
class FileByteSource final : public ByteSource {
 public:
  enum class Changes : uint8_t {
    Followed,  // what is read is what is there now: files that grow
    Refused,   // nothing is read any more once the file was written to (st_mtime, st_size)
  };
  // Takes an open descriptor; Unsupported unless it is a regular file.
  static Result<std::shared_ptr<const FileByteSource>> adopt(Fd fd,
                                                             Changes changes = Changes::Followed);
  // The file of this name. As adopt(), else by errno; messages begin with the path.
  static Result<std::shared_ptr<const FileByteSource>> open(const std::string& path);
  uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override;
  bool will_be_read_in_pieces(uint64_t offset, uint64_t size_bytes) const override;
  bool is_unchanged() const override;
  bool was_changed() const override { return was_changed_; }
  int fd() const { return fd_.get(); }
  // When its bytes were changed last.
  uint64_t modified_unix_ns() const;

 private:
  FileByteSource(Fd fd, uint64_t size_bytes, Changes changes, uint64_t modified_unix_ns)
      : fd_(std::move(fd)),
        size_bytes_(size_bytes),
        changes_(changes),
        modified_unix_ns_(modified_unix_ns) {}
  Fd fd_;
  uint64_t size_bytes_;
  Changes changes_;
  uint64_t modified_unix_ns_;  // when it was opened
  mutable std::atomic<bool> was_changed_ = false;
};

// A whole small file (such as one of /proc) up to `limit_bytes`.
Result<std::string> read_small_file(const std::string& path, size_t limit_bytes = 64 * 1024 * 1024);

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

// Whether what belongs to this user may be believed: ours, root's, under sudo SUDO_UID's.
bool is_trusted_owner(unsigned uid);

// Whether both files lie in one directory, however their paths are spelled. False if a directory
// cannot be looked at.
bool are_in_same_directory(const std::string& path, const std::string& other);

// Whether both paths lead to one file that is there, links followed.
bool is_same_file(const std::string& path, const std::string& other);

// Whether other users could replace a file at `path`: its directory is writable by them and has no
// sticky bit. Worth a warning; false if the directory cannot be looked at.
bool others_can_replace(const std::string& path);

}  // namespace sentry_prof::os
