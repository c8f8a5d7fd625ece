#include "elf/section_in_file.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::elf {

SectionInFile::SectionInFile(std::shared_ptr<const ByteSource> file, uint64_t offset,
                             uint64_t size_bytes)
    : file_(std::move(file)),
      offset_(offset),
      size_bytes_(size_bytes),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(size_bytes))),
      blocks_(static_cast<size_t>((size_bytes + kBlock_bytes - 1) / kBlock_bytes)) {}

bool SectionInFile::read(uint64_t block) const {
  const std::lock_guard lock(reading_);
  std::atomic<Block>& state = blocks_[static_cast<size_t>(block)];
  if (state == Block::InFile) {
    const uint64_t begin = block * kBlock_bytes;
    const std::span<std::byte> place(
        bytes_.get() + begin, static_cast<size_t>(std::min(kBlock_bytes, size_bytes_ - begin)));
    const bool is_read = file_->read_at(offset_ + begin, place);
    if (!is_read) has_unreadable_blocks_ = true;
    state = is_read ? Block::Here : Block::Unreadable;
  }
  return state == Block::Here;
}

}  // namespace sentry_prof::elf
