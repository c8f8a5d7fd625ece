// Where things are in an ELF file: segments, and the few sections that matter here.
// Source: System V gABI, chapters 4 and 5; <elf.h>.
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "sentry_prof/result.h"

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sentry_prof::elf {

struct Segment {  // PT_LOAD
  LinkAddress vaddr;
  uint64_t file_offset = 0;
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;
  bool is_executable = false;

  // In the file, of an address that it holds.
  uint64_t offset_of(LinkAddress address) const {
    return file_offset + (address.value - vaddr.value);
  }
};

struct Section {
  LinkAddress address;
  uint64_t file_offset = 0;
  uint64_t size_bytes = 0;
  uint64_t alignment = 0;  // as the file states it
};

// A section that is stored compressed: with an Elf_Chdr before it (SHF_COMPRESSED, gABI chapter 4),
// or, under a name that begins with ".z", with "ZLIB" and its size in eight bytes, high ones first,
// as GNU's and Go's tools wrote it before.
struct PackedSection {
  Section section;
  bool has_gnu_header = false;
};

struct SymbolSection {
  Section symbols;
  Section strings;
};

// What may say where Go's runtime has its tables: go_places.h.
struct GoSections {
  bool is_of_go = false;
  std::optional<Section> functions;  // .gopclntab
  std::optional<Section> module;     // .go.module: from Go 1.26 on
  std::optional<Section> data_rel_ro;
};

// Through which an image calls functions of others: symbols/plt_names.h.
struct PltSections {
  std::array<std::optional<Section>, 3> code;  // .plt, .plt.sec, .plt.got
  std::optional<Section> relocations;          // .rela.plt
};

struct Layout {
  // Executables have about ten segments and two or three note segments.
  static constexpr size_t kMaxSegments = 512;
  static constexpr size_t kMaxNotes = 32;

  bool is_64_bit = true;
  std::endian order = std::endian::little;
  uint16_t machine = 0;  // EM_*
  uint16_t type = 0;     // ET_*
  uint32_t flags = 0;    // e_flags
  LinkAddress entry;
  std::vector<Segment>
      segments;  // in the file's order; the gABI wants them sorted, hostile files are not
  std::vector<Section> notes;   // PT_NOTE first, then .note.gnu.build-id; at most kMaxNotes
  std::optional<Section> text;  // with contents (not NOBITS)
  std::optional<Section> eh_frame, eh_frame_hdr,
      debug_frame;  // eh_frame_hdr also from PT_GNU_EH_FRAME
  std::optional<PackedSection> packed_debug_frame;
  std::optional<Section> rela_dyn;
  GoSections go;
  PltSections plt;
  std::optional<Section> gnu_debugdata;  // an ELF file in xz with what was stripped: MiniDebugInfo
  std::optional<SymbolSection> symtab, dynsym;
  std::optional<Section> dynamic;  // PT_DYNAMIC

  // The first segment whose part of the file holds the `size_bytes` at `address`, if need be of the
  // executable ones only. Null if none does.
  enum class Which : uint8_t { Any, Executable };
  const Segment* segment_with(LinkAddress address, uint64_t size_bytes, Which which) const;

  // p_vaddr of the first PT_LOAD, not page-rounded: symbolic's "load address". 0 without segments.
  LinkAddress first_vaddr() const;
  // Bytes from there to the end of the last PT_LOAD.
  uint64_t size_in_memory_bytes() const;
};

// Reads headers only, never more than a few hundred KiB of memory. Every offset and size in the
// result lies within the file: what is compressed (but .debug_frame) or outside the file is left
// out, a segment whose contents are cut off is shortened (its address and memory size stay).
// Section headers are optional, as they are for the kernel. Malformed, Unsupported.
Result<Layout> read_layout(const ByteSource& file);

// The code at `address`, out.size() bytes of one executable segment. False if there is none, or it
// cannot be read.
bool read_code(const ByteSource& file, const Layout& layout, LinkAddress address,
               std::span<std::byte> out);

// The bias of a mapping of `size_bytes` at `begin` from `file_offset`; none if no PT_LOAD of the
// file can have been mapped so. Where two segments share a page of the file, the mapping is taken
// for the executable one's: give executable mappings only, the answer is not certain for others.
std::optional<LoadBias> bias_of_mapping(const Layout& layout, RuntimeAddress begin,
                                        uint64_t size_bytes, uint64_t file_offset);

// All that the bias of a mapping may be that shows the file from `file_offset` on, executable or
// not.
std::vector<LoadBias> possible_biases(const Layout& layout, RuntimeAddress begin,
                                      uint64_t file_offset);

// The executable segment that memory of `size_bytes` at `begin` lies in wholly, where `bias` puts
// it: in the pages that the loader gives to it. Null if there is none.
const Segment* segment_of_code(const Layout& layout, LoadBias bias, RuntimeAddress begin,
                               uint64_t size_bytes);

// "x86_64", "x86", "arm64", "arm", "mips", ...: the names Sentry's debug meta uses. Empty if
// unknown.
std::string_view architecture_name(const Layout& layout);

}  // namespace sentry_prof::elf
