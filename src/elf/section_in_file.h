// A section that is left in its file and read where it is looked at.
#pragma once

#include "base/byte_source.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace sentry_prof::elf {

// Of LLVM's 5 MB of unwind tables, a compilation's profile needs the blocks of 2,700 functions:
// less than half. What was read stays as it was then; of a file that is overwritten in place the
// blocks are of different times. Any thread may use it.
class SectionInFile {
 public:
  // Keeps the file. Nothing is read; the memory is reserved, not touched.
  SectionInFile(std::shared_ptr<const ByteSource> file, uint64_t offset, uint64_t size_bytes);

  // All of the section. Only what bring() was asked for has a value.
  Bytes bytes() const { return {bytes_.get(), static_cast<size_t>(size_bytes_)}; }

  // Makes [begin, end) of bytes() readable. False: the file cannot be read there, now or before, or
  // it lies outside.
  [[nodiscard]] bool bring(uint64_t begin, uint64_t end) const {
    if (begin >= end) return begin == end;
    if (end > size_bytes_) return false;
    const uint64_t last = (end - 1) / kBlock_bytes;
    for (uint64_t block = begin / kBlock_bytes; block <= last; ++block) {
      if (blocks_[block].load(std::memory_order_acquire) != Block::Here && !read(block)) {
        return false;
      }
    }
    return true;
  }

  bool has_unreadable_blocks() const { return has_unreadable_blocks_; }

 private:
  // Two pages: with one a fifth fewer bytes are read, in half as many reads again.
  static constexpr uint64_t kBlock_bytes = 8 << 10;
  enum class Block : uint8_t { InFile, Here, Unreadable };

  bool read(uint64_t block) const;

  std::shared_ptr<const ByteSource> file_;
  uint64_t offset_;
  uint64_t size_bytes_;
  std::unique_ptr<std::byte[]> bytes_;  // NOLINT: a vector would touch all of it
  mutable std::vector<std::atomic<Block>> blocks_;
  mutable std::mutex reading_;
  mutable std::atomic<bool> has_unreadable_blocks_ = false;
};

}  // namespace sentry_prof::elf
