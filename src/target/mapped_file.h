// A file that cannot be opened any more, read in a process that has it mapped (the Linux half).
#pragma once

#include "base/byte_source.h"
#include "sentry_prof/result.h"
#include "target/proc.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sentry_prof::target {

// A library that was deleted or replaced, as an upgrade does: without a capability its inode cannot
// be opened (proc_pid_map_files(5)), but its unwind tables are mapped with its code. Bytes that are
// not mapped, or may be written to there, are zero; those of PT_GNU_RELRO as the loader made them.
// Of one thread, which may have to wait as that process would (os::read_memory()).
class MappedFile final : public ByteSource {
 public:
  // NotFound: the process has ended, has something else there by now, or its memory may not be
  // read.
  static Result<std::shared_ptr<const ByteSource>> open(const MappingFacts& mapping);

  uint64_t size_bytes() const override { return size_bytes_; }
  // False also of bytes none of which is there, and from when another file is where it was.
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override;
  bool is_unchanged() const override;
  bool was_changed() const override { return was_changed_; }

 private:
  using Pieces = std::vector<MappedPiece>;

  explicit MappedFile(MappingFacts mapping) : mapping_(std::move(mapping)) {}
  std::optional<Pieces> look() const;
  bool read_pieces(uint64_t offset, std::span<std::byte> out) const;
  bool has_same_head() const;

  MappingFacts mapping_;     // as the maps have it, with its inode: find_mapping()
  uint64_t size_bytes_ = 0;  // up to the end of the last piece
  std::vector<std::byte> head_;
  mutable Pieces pieces_;  // of the last look
  mutable bool was_changed_ = false;
};

}  // namespace sentry_prof::target
