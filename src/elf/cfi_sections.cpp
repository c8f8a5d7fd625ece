// Copies the sections with call frame information out of a file.
#include "base/checked.h"
#include "elf/cfi_search_table.h"
#include "elf/cfi_table.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace sentry_prof::elf {

namespace {

// Fifty times the .eh_frame of a browser or of LLVM.
constexpr uint64_t kMaxSectionBytes = uint64_t{512} << 20;

Result<CfiSection> copy(const ByteSource& file, const Section& section, const char* name) {
  if (section.size_bytes > kMaxSectionBytes) {
    return fail(ErrorCode::LimitExceeded, std::string(name) + " is larger than 512 MiB");
  }
  if (!range_fits(section.file_offset, section.size_bytes, file.size_bytes())) {
    return fail(ErrorCode::Malformed, std::string(name) + " reaches past the end of the file");
  }
  CfiSection result;
  result.address = section.address;
  result.bytes.resize(static_cast<size_t>(section.size_bytes));
  if (!file.read_at(section.file_offset, result.bytes)) {
    return fail(ErrorCode::Io, std::string(name) + " cannot be read from the file");
  }
  return result;
}

Result<CfiSection> copy_if_there(const ByteSource& file, const std::optional<Section>& section,
                                 const char* name) {
  return section ? copy(file, *section, name) : CfiSection{};
}

FrameSection view(const CfiSection& section, const Layout& layout) {
  FrameSection result;
  result.bytes = section.bytes;
  result.address = section.address.value;
  result.order = layout.order;
  result.address_size_bytes = layout.is_64_bit ? 8 : 4;
  return result;
}

// What the file holds of the segment at and behind `address`.
std::optional<Section> rest_of_segment(const ByteSource& file, const Layout& layout,
                                       uint64_t address) {
  for (const Segment& segment : layout.segments) {
    const uint64_t inside = address - segment.vaddr.value;
    if (address < segment.vaddr.value || inside >= segment.file_bytes) continue;
    uint64_t offset = 0;
    if (!checked_add(segment.file_offset, inside, offset)) continue;
    if (offset >= file.size_bytes()) continue;
    const uint64_t size = std::min(segment.file_bytes - inside, file.size_bytes() - offset);
    return Section{.address = {address}, .file_offset = offset, .size_bytes = size};
  }
  return std::nullopt;
}

// How far the chain of entries goes: to the end, to the first thing that is no entry or, if so
// wanted, to the first terminator, which is included.
uint64_t length_of_chain(const FrameSection& section, bool ends_at_terminator) {
  uint64_t offset = 0;
  Entry entry;
  while (read_entry(section, offset, entry) == CfiStatus::Ok) {
    offset = entry.end;
    if (ends_at_terminator && entry.kind == EntryKind::Empty) break;
  }
  return offset;
}

// With a search table, the section ends with the highest FDE in it: its length field is read to
// avoid copying the rest of the segment.
std::optional<uint64_t> length_by_table(const ByteSource& file, const Section& whole,
                                        const FrameSection& header) {
  const std::optional<SearchTable> table = SearchTable::open(header);
  if (!table) return std::nullopt;
  const uint64_t inside = table->highest_fde_address() - whole.address.value;
  std::array<std::byte, 4> field{};
  if (inside >= whole.size_bytes || whole.size_bytes - inside < field.size()) return std::nullopt;
  if (!file.read_at(whole.file_offset + inside, field)) return std::nullopt;
  const uint64_t length = ByteReader(field, header.order).u32();
  const uint64_t end = inside + field.size() + length;
  return end <= whole.size_bytes ? std::optional(end) : std::nullopt;
}

Result<CfiSection> copy_by_table(const ByteSource& file, Section whole,
                                 const FrameSection& header) {
  const std::optional<uint64_t> length = length_by_table(file, whole, header);
  if (!length) return CfiSection{};
  whole.size_bytes = *length;
  return copy(file, whole, ".eh_frame");
}

Result<CfiSection> copy_by_chain(const ByteSource& file, Section whole, const Layout& layout) {
  whole.size_bytes = std::min(whole.size_bytes, kMaxSectionBytes);
  Result<CfiSection> section = copy(file, whole, ".eh_frame");
  if (!section) return section;
  section->bytes.resize(static_cast<size_t>(length_of_chain(view(*section, layout), true)));
  section->bytes.shrink_to_fit();
  return section;
}

// For files without section headers: .eh_frame_hdr says where .eh_frame begins, not where it ends.
Result<CfiSection> find_eh_frame(const ByteSource& file, const Layout& layout,
                                 const CfiSection& header_section) {
  const FrameSection header = view(header_section, layout);
  const std::optional<uint64_t> address = eh_frame_address(header);
  if (!address) return CfiSection{};
  const std::optional<Section> whole = rest_of_segment(file, layout, *address);
  if (!whole) return CfiSection{};
  Result<CfiSection> section = copy_by_table(file, *whole, header);
  if (!section) return section;
  const bool is_plausible = !section->bytes.empty() &&
                            length_of_chain(view(*section, layout), false) == section->bytes.size();
  return is_plausible ? std::move(section) : copy_by_chain(file, *whole, layout);
}

}  // namespace

Result<CfiSections> read_cfi_sections(const ByteSource& file, const Layout& layout) {
  auto header = copy_if_there(file, layout.eh_frame_hdr, ".eh_frame_hdr");
  if (!header) return tl::unexpected(header.error());
  auto eh_frame = layout.eh_frame ? copy(file, *layout.eh_frame, ".eh_frame")
                                  : find_eh_frame(file, layout, *header);
  if (!eh_frame) return tl::unexpected(eh_frame.error());
  auto debug_frame = copy_if_there(file, layout.debug_frame, ".debug_frame");
  if (!debug_frame) return tl::unexpected(debug_frame.error());
  CfiSections result;
  result.is_64_bit = layout.is_64_bit;
  result.order = layout.order;
  result.entry = layout.entry;
  result.eh_frame = std::move(*eh_frame);
  result.eh_frame_hdr = std::move(*header);
  result.debug_frame = std::move(*debug_frame);
  if (layout.text) result.text = layout.text->address;
  return result;
}

}  // namespace sentry_prof::elf
