#include "elf/layout.h"

#include "base/checked.h"
#include "elf/dynamic_symbols.h"
#include "elf/headers.h"
#include "elf/section_scan.h"

#include <algorithm>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

// Linux refuses larger program header tables (fs/binfmt_elf.c, load_elf_phdrs).
constexpr uint64_t kMaxProgramHeaderTable_bytes = 64 * 1024;

Result<std::vector<ProgramHeader>> read_program_headers(const ByteSource& file,
                                                        const FileHeader& header,
                                                        const SectionTable& sections) {
  std::vector<ProgramHeader> headers;
  uint64_t count = header.program_header_count;
  if (count == PN_XNUM) count = sections.extended_program_header_count;
  if (count == 0) return headers;
  if (header.program_header_bytes != header.expected_program_header_bytes()) {
    return fail(ErrorCode::Malformed, "program headers have an unknown size");
  }
  if (count * header.program_header_bytes > kMaxProgramHeaderTable_bytes) {
    return fail(ErrorCode::Unsupported, "more than 64 KiB of program headers");
  }
  std::vector<std::byte> bytes(static_cast<size_t>(count) * header.program_header_bytes);
  if (!file.read_at(header.program_headers_offset, bytes)) {
    return fail(ErrorCode::Malformed, "program headers lie outside the file");
  }
  ByteReader reader(bytes, header.order);
  while (!reader.at_end()) headers.push_back(decode_program_header(reader, header.is_64_bit));
  return headers;
}

Result<void> add_segment(const ProgramHeader& header, uint64_t file_size_bytes, Layout& layout) {
  uint64_t end = 0;
  if (!checked_add(header.vaddr, header.memory_bytes, end)) {
    return fail(ErrorCode::Malformed, "a segment wraps round the address space");
  }
  if (layout.segments.size() == Layout::kMaxSegments) {
    return fail(ErrorCode::Unsupported, "too many loadable segments");
  }
  Segment segment;
  segment.vaddr = {header.vaddr};
  segment.file_offset = std::min(header.file_offset, file_size_bytes);
  segment.file_bytes = std::min(header.file_bytes, file_size_bytes - segment.file_offset);
  segment.memory_bytes = header.memory_bytes;
  segment.is_executable = (header.flags & PF_X) != 0;
  layout.segments.push_back(segment);
  return {};
}

std::optional<Section> contents_of(const ProgramHeader& header, uint64_t file_size_bytes) {
  if (header.file_bytes == 0 ||
      !range_fits(header.file_offset, header.file_bytes, file_size_bytes)) {
    return std::nullopt;
  }
  return Section{{header.vaddr}, header.file_offset, header.file_bytes, header.alignment};
}

Result<void> add_program_headers(const std::vector<ProgramHeader>& headers,
                                 uint64_t file_size_bytes, Layout& layout) {
  for (const ProgramHeader& header : headers) {
    if (header.type == PT_LOAD) {
      if (auto added = add_segment(header, file_size_bytes, layout); !added) return added;
    } else if (header.type == PT_NOTE && layout.notes.size() < Layout::kMaxNotes) {
      const auto note = contents_of(header, file_size_bytes);
      if (note) layout.notes.push_back(*note);
    }
  }
  return {};
}

// What section headers did not tell: there are none, they are cut down, or their names are gone.
void add_from_program_headers(const ByteSource& file, const std::vector<ProgramHeader>& headers,
                              Layout& layout) {
  for (const ProgramHeader& header : headers) {
    if (header.type == PT_GNU_EH_FRAME && !layout.eh_frame_hdr) {
      layout.eh_frame_hdr = contents_of(header, file.size_bytes());
    } else if (header.type == PT_DYNAMIC && !layout.dynamic) {
      layout.dynamic = contents_of(header, file.size_bytes());
    }
  }
  if (layout.dynsym || !layout.dynamic) return;
  layout.dynsym = find_dynamic_symbols(file, layout, *layout.dynamic);
}

// The ABI flags by which symbolic tells 64-bit MIPS; they are EF_MIPS_ABI_O64 and EABI64 in
// binutils' include/elf/mips.h. The n64 ABI has neither and is "mips" there, so it is here.
constexpr uint32_t kMips64Flags = 0x2000 | 0x4000;

}  // namespace

const Segment* Layout::segment_with(LinkAddress address, uint64_t size_bytes, Which which) const {
  const auto found = std::ranges::find_if(segments, [&](const Segment& segment) {
    return address >= segment.vaddr &&
           range_fits(address.value - segment.vaddr.value, size_bytes, segment.file_bytes) &&
           (which == Which::Any || segment.is_executable);
  });
  return found == segments.end() ? nullptr : &*found;
}

bool read_code(const ByteSource& file, const Layout& layout, LinkAddress address,
               std::span<std::byte> out) {
  const Segment* segment = layout.segment_with(address, out.size(), Layout::Which::Executable);
  return segment != nullptr && file.read_at(segment->offset_of(address), out);
}

LinkAddress Layout::first_vaddr() const {
  return segments.empty() ? LinkAddress{} : segments.front().vaddr;
}

uint64_t Layout::size_in_memory_bytes() const {
  uint64_t end = first_vaddr().value;
  for (const Segment& segment : segments) {
    end = std::max(end, segment.vaddr.value + segment.memory_bytes);
  }
  return end - first_vaddr().value;
}

Result<Layout> read_layout(const ByteSource& file) {
  const Result<FileHeader> header = read_file_header(file);
  if (!header) return tl::unexpected(header.error());
  const SectionTable sections = find_section_table(file, *header);
  const auto program_headers = read_program_headers(file, *header, sections);
  if (!program_headers) return tl::unexpected(program_headers.error());

  Layout layout;
  layout.is_64_bit = header->is_64_bit;
  layout.order = header->order;
  layout.machine = header->machine;
  layout.type = header->type;
  layout.flags = header->flags;
  layout.entry = {header->entry};
  const auto added = add_program_headers(*program_headers, file.size_bytes(), layout);
  if (!added) return tl::unexpected(added.error());
  scan_sections(file, *header, sections, layout);
  add_from_program_headers(file, *program_headers, layout);
  return layout;
}

std::string_view architecture_name(const Layout& layout) {
  switch (layout.machine) {
    case EM_386:
      return "x86";
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "arm64";
    case EM_ARM:
      return "arm";
    case EM_PPC:
      return "ppc";
    case EM_PPC64:
      return "ppc64";
    case EM_MIPS:
    case EM_MIPS_RS3_LE:
      return (layout.flags & kMips64Flags) != 0 ? "mips64" : "mips";
    default:
      return {};
  }
}

}  // namespace sentry_prof::elf
