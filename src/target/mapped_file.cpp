#include "target/mapped_file.h"

#include "os/file.h"
#include "os/paths.h"
#include "os/process_memory.h"
#include "target/process_files.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sentry_prof::target {

namespace {

// A process that is starting maps, and protects, several times a millisecond.
constexpr int kMaxAttempts = 3;
// Of an ELF file: its header, program headers, and mostly the build id.
constexpr uint64_t kHead_bytes = 1024;

constexpr const char* kNotMapped = "its process has it mapped no more";

Result<std::string> read_maps(uint32_t pid) {
  return os::read_small_file(directory_of(pid) + "/maps");
}

uint64_t end_of(const MappedPiece& piece) { return piece.file_offset + piece.size_bytes; }

// What of `out`, which begins at `offset` of the file, the piece has. True if it was read.
bool read_piece(uint32_t pid, const MappedPiece& piece, uint64_t offset, std::span<std::byte> out) {
  const uint64_t begin = std::max(offset, piece.file_offset);
  const uint64_t end = std::min(offset + out.size(), end_of(piece));
  if (begin >= end) return false;
  const auto place = out.subspan(begin - offset, end - begin);
  const uint64_t address = piece.begin.value + (begin - piece.file_offset);
  return os::read_memory(static_cast<pid_t>(pid), address, place) > 0;
}

}  // namespace

Result<std::shared_ptr<const ByteSource>> MappedFile::open(const MappingFacts& mapping) {
  const auto maps = read_maps(mapping.pid);
  if (!maps) return tl::unexpected(maps.error());
  const auto found = find_mapping(*maps, mapping);
  if (!found) return fail(ErrorCode::NotFound, kNotMapped);
  const std::shared_ptr<MappedFile> file(new MappedFile(*found));
  file->pieces_ = parse_mapped_pieces(*maps, *found);
  if (file->pieces_.empty()) return fail(ErrorCode::NotFound, kNotMapped);
  file->size_bytes_ = end_of(file->pieces_.back());
  std::vector<std::byte> head(std::min(kHead_bytes, file->size_bytes_));
  if (!file->read_at(0, head)) return fail(ErrorCode::NotFound, kNotMapped);
  file->head_ = std::move(head);
  return file;
}

// What lies at an address says nothing of the file that it is of. So the pieces have to be the same
// in a look after the read. A number of an inode is soon another file's: that begins otherwise.
bool MappedFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_bytes_ || out.size() > size_bytes_ - offset) return false;
  for (int attempt = 0; attempt < kMaxAttempts && !was_changed_; ++attempt) {
    const bool is_there = read_pieces(offset, out);
    const bool is_same_file = has_same_head();
    auto pieces = look();
    if (!pieces) return false;
    if (*pieces == pieces_) {
      was_changed_ = !is_same_file;
      return is_there && is_same_file;
    }
    pieces_ = std::move(*pieces);
  }
  return false;
}

bool MappedFile::is_unchanged() const {
  std::byte first{};
  return read_at(mapping_.file_offset, {&first, 1}) || !was_changed_;
}

bool MappedFile::read_pieces(uint64_t offset, std::span<std::byte> out) const {
  std::ranges::fill(out, std::byte{0});
  bool is_there = out.empty();
  for (const MappedPiece& piece : pieces_) {
    is_there = read_piece(mapping_.pid, piece, offset, out) || is_there;
  }
  return is_there;
}

bool MappedFile::has_same_head() const {
  std::vector<std::byte> head(head_.size());
  return read_pieces(0, head) && head == head_;
}

// Nothing if that cannot be told. No pieces of a process that has ended.
std::optional<MappedFile::Pieces> MappedFile::look() const {
  const auto maps = read_maps(mapping_.pid);
  Pieces pieces;
  if (maps) {
    pieces = parse_mapped_pieces(*maps, mapping_);
  } else if (!is_of_ended_process(maps.error())) {
    return std::nullopt;
  }
  if (pieces.empty()) was_changed_ = true;
  return pieces;
}

}  // namespace sentry_prof::target
