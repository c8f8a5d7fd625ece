#include "elf/identity.h"

#include "base/hex.h"

#include <algorithm>
#include <array>
#include <optional>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

constexpr uint32_t kMaxBuildId_bytes = 64;  // SHA-1 has 20, the longest in use 32
constexpr int kMaxNotesPerSection = 1024;   // real segments have one to four
constexpr size_t kHashedText_bytes = 4096;

struct Note {
  uint32_t type = 0;
  uint32_t description_bytes = 0;
  uint64_t description_offset = 0;
  uint64_t end_offset = 0;
};

uint64_t aligned_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// The note at `offset` of a file; none if it does not lie within the file or has no name. Its
// header is three 32-bit words in both classes; padding is counted from its begin.
std::optional<Note> read_note(const ByteSource& file, std::endian order, uint64_t offset,
                              uint64_t alignment) {
  std::array<std::byte, sizeof(Elf64_Nhdr)> bytes{};
  if (!file.read_at(offset, bytes)) return std::nullopt;
  ByteReader reader(bytes, order);
  const uint32_t name_bytes = reader.u32();
  Note note;
  note.description_bytes = reader.u32();
  note.type = reader.u32();
  const uint64_t description = aligned_up(bytes.size() + uint64_t{name_bytes}, alignment);
  const uint64_t end = description + note.description_bytes;
  if (end > file.size_bytes() - offset) return std::nullopt;
  note.description_offset = offset + description;
  note.end_offset = offset + aligned_up(end, alignment);
  return note;
}

// symbolic does not look at the owner's name ("GNU"), so that the first note of type 3 wins; nor
// does it hold a note against the end of its segment, only against the end of the file. So be it
// here: an id is of use only if it is the one under which sentry-cli uploads the debug files.
std::optional<std::vector<std::byte>> find_build_id(const ByteSource& file, std::endian order,
                                                    const Section& notes) {
  const uint64_t alignment = std::max<uint64_t>(notes.alignment, 4);
  if (alignment != 4 && alignment != 8) return std::nullopt;
  uint64_t offset = notes.file_offset;
  for (int i = 0; i < kMaxNotesPerSection && offset < notes.file_offset + notes.size_bytes; ++i) {
    const auto note = read_note(file, order, offset, alignment);
    if (!note) break;
    if (note->type == NT_GNU_BUILD_ID && note->description_bytes <= kMaxBuildId_bytes) {
      std::vector<std::byte> id(note->description_bytes);
      if (file.read_at(note->description_offset, id)) return id;
    }
    offset = note->end_offset;
  }
  return std::nullopt;
}

std::optional<std::vector<std::byte>> find_build_id(const ByteSource& file, const Layout& layout) {
  for (const Section& notes : layout.notes) {
    if (auto id = find_build_id(file, layout.order, notes)) return id;
  }
  return std::nullopt;
}

// Sixteen bytes out of the first page of the code: every byte is XORed onto its position modulo 16.
std::array<std::byte, 16> fold_text(const ByteSource& file, const Section& text) {
  std::array<std::byte, 16> folded{};
  std::vector<std::byte> page(
      static_cast<size_t>(std::min<uint64_t>(text.size_bytes, kHashedText_bytes)));
  if (!file.read_at(text.file_offset, page)) return folded;
  for (size_t i = 0; i < page.size(); ++i) folded[i % folded.size()] ^= page[i];
  return folded;
}

}  // namespace

Uuid debug_id_of_build_id(std::span<const std::byte> build_id, std::endian order) {
  Uuid id;
  const size_t count = std::min(build_id.size(), id.bytes.size());
  for (size_t i = 0; i < count; ++i) id.bytes[i] = std::to_integer<uint8_t>(build_id[i]);
  if (order == std::endian::little) {
    const auto begin = id.bytes.begin();
    std::reverse(begin, begin + 4);
    std::reverse(begin + 4, begin + 6);
    std::reverse(begin + 6, begin + 8);
  }
  return id;
}

Identity read_identity(const ByteSource& file, const Layout& layout) {
  Identity identity;
  if (auto build_id = find_build_id(file, layout)) {
    identity.build_id = std::move(*build_id);
    identity.code_id = to_hex(identity.build_id);
    identity.debug_id = debug_id_of_build_id(identity.build_id, layout.order);
  } else if (layout.text) {
    identity.debug_id = debug_id_of_build_id(fold_text(file, *layout.text), layout.order);
  }
  return identity;
}

}  // namespace sentry_prof::elf
