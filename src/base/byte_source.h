// Random access to the bytes of a file that nobody promises to keep as it is.
#pragma once

#include "base/byte_reader.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof {

// Implementations: MemoryByteSource (here, for tests and the vdso) and os::FileByteSource.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size_bytes() const = 0;
  // Fills all of `out` from `offset`, or returns false (past the end, truncated meanwhile, I/O
  // error).
  [[nodiscard]] virtual bool read_at(uint64_t offset, std::span<std::byte> out) const = 0;
  // Told before [offset, offset + size_bytes) is read in pieces, if at all: a source on a disk
  // starts to fetch it. False: a read is dear, whatever its size; read all at once.
  virtual bool will_be_read_in_pieces(uint64_t /*offset*/, uint64_t /*size_bytes*/) const {
    return false;
  }
  // Whether a read failed because nobody answered in time: the file opened anew may be read.
  virtual bool was_silent() const { return false; }
  // Whether the bytes are still those of the file that was opened, as far as that is watched.
  virtual bool is_unchanged() const { return true; }
  // Whether a read failed, or is_unchanged() was false, because the file was written to meanwhile.
  virtual bool was_changed() const { return false; }
};

class MemoryByteSource final : public ByteSource {
 public:
  explicit MemoryByteSource(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    for (size_t i = 0; i < out.size(); ++i) out[i] = bytes_[static_cast<size_t>(offset) + i];
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace sentry_prof
