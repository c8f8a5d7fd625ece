#include "target/mapped_file.h"

#include "os/file.h"
#include "os/process_memory.h"
#include "target/process_files.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::target {

namespace {

// A process that is starting maps, and protects, several times a millisecond.
constexpr int kMaxAttempts = 3;

constexpr const char* kNotMapped = "its process has it mapped no more";

// Empty of a process that has ended.
std::string maps_of(uint32_t pid) {
  return os::read_small_file(directory_of(pid) + "/maps").value_or("");
}

uint64_t end_of(const MappedPiece& piece) {
  const uint64_t end = piece.file_offset + piece.size_bytes;
  return end < piece.file_offset ? piece.file_offset : end;
}

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
  const auto found = find_mapping(maps_of(mapping.pid), mapping);
  if (!found) return fail(ErrorCode::NotFound, kNotMapped);
  const std::shared_ptr<MappedFile> file(new MappedFile(*found));
  for (const MappedPiece& piece : file->pieces()) {
    file->size_bytes_ = std::max(file->size_bytes_, end_of(piece));
  }
  std::byte first{};
  if (!file->read_at(found->file_offset, {&first, 1})) {
    return fail(ErrorCode::NotFound, kNotMapped);
  }
  return file;
}

// What lies at an address says nothing of the file that it is of. So it is read between two looks
// that found the same.
bool MappedFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_bytes_ || out.size() > size_bytes_ - offset) return false;
  Pieces before = pieces();
  for (int attempt = 0; attempt < kMaxAttempts && !before.empty(); ++attempt) {
    std::ranges::fill(out, std::byte{0});
    bool is_there = out.empty();
    for (const MappedPiece& piece : before) {
      is_there = read_piece(mapping_.pid, piece, offset, out) || is_there;
    }
    Pieces after = pieces();
    if (after == before) return is_there;
    before = std::move(after);
  }
  if (before.empty()) was_changed_ = true;
  return false;
}

MappedFile::Pieces MappedFile::pieces() const {
  return parse_mapped_pieces(maps_of(mapping_.pid), mapping_);
}

}  // namespace sentry_prof::target
