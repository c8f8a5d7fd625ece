// Files that others own, read as they are.
#pragma once

#include "base/byte_source.h"
#include "os/fd.h"
#include "sentry_prof/result.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

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

}  // namespace sentry_prof::os
