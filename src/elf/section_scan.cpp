#include "elf/section_scan.h"

#include "base/checked.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

// 8 MiB of headers. The largest executables have some hundreds; only relocatable files built with
// -ffunction-sections come near.
constexpr uint64_t kMaxSections = 1 << 17;
constexpr size_t kPieceSections = 1024;  // 64 KiB at a time
constexpr uint64_t kNames_bytes =
    64 * 1024;  // of .shstrtab are copied; names behind are read singly
// Each a read of its own, which takes a hostile file's reader through a helper. Linked files have
// no names behind, and one table of symbols of each type.
constexpr size_t kMaxSingleReads = 256;
constexpr size_t kMaxSymbolTables = 8;

// The x86-64 psABI's type of .eh_frame, used by LLVM's linkers. On ARM the same number is
// SHT_ARM_EXIDX, but that section has another name.
#ifndef SHT_X86_64_UNWIND
constexpr uint32_t SHT_X86_64_UNWIND = 0x70000001;
#endif

constexpr std::string_view kLongestName = ".data.rel.ro.gopclntab";

// .shstrtab: answers only whether the name at an offset is a certain one.
class SectionNames {
 public:
  SectionNames(const ByteSource& file, Section table) : file_(file), table_(table) {
    prefix_.resize(static_cast<size_t>(std::min(table.size_bytes, kNames_bytes)));
    if (!file.read_at(table.file_offset, prefix_)) table_.size_bytes = 0;
  }

  // The name at `offset`, cut behind the length of the longest name that is asked for.
  std::string_view at(uint32_t offset) {
    if (offset >= table_.size_bytes) return {};
    const auto count = static_cast<size_t>(
        std::min<uint64_t>(table_.size_bytes - offset, kLongestName.size() + 1));
    std::span<const std::byte> bytes;
    if (range_fits<uint64_t>(offset, count, prefix_.size())) {
      bytes = std::span(prefix_).subspan(offset, count);
    } else {
      const std::span out = std::span(single_).first(count);
      if (++single_reads_ > kMaxSingleReads) return {};
      if (!file_.read_at(table_.file_offset + offset, out)) return {};
      bytes = out;
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.substr(0, text.find('\0'));
  }

 private:
  const ByteSource& file_;
  Section table_;
  std::vector<std::byte> prefix_;
  std::array<std::byte, kLongestName.size() + 1> single_{};
  size_t single_reads_ = 0;
};

std::optional<SectionHeader> read_section_header(const ByteSource& file, const FileHeader& header,
                                                 uint64_t table_offset, uint64_t index) {
  std::array<std::byte, sizeof(Elf64_Shdr)> bytes{};
  const std::span entry = std::span(bytes).first(header.expected_section_header_bytes());
  uint64_t offset = 0;
  if (!checked_mul<uint64_t>(index, entry.size(), offset) ||
      !checked_add(offset, table_offset, offset) || !file.read_at(offset, entry)) {
    return std::nullopt;
  }
  ByteReader reader(entry, header.order);
  return decode_section_header(reader, header.is_64_bit);
}

// Looks at section headers one after the other and keeps the first of each kind.
class Scan {
 public:
  Scan(const ByteSource& file, const FileHeader& header, const SectionTable& table, Layout& layout)
      : file_(file),
        header_(header),
        table_(table),
        layout_(layout),
        names_(file, names_section()) {}

  void run() {
    const size_t entry_bytes = header_.expected_section_header_bytes();
    std::vector<std::byte> piece;
    for (uint64_t first = 0; first < table_.count; first += kPieceSections) {
      piece.resize(static_cast<size_t>(std::min<uint64_t>(kPieceSections, table_.count - first)) *
                   entry_bytes);
      if (!file_.read_at(table_.file_offset + first * entry_bytes, piece)) return;
      ByteReader reader(piece, header_.order);
      while (!reader.at_end()) look_at(decode_section_header(reader, header_.is_64_bit));
    }
  }

 private:
  Section names_section() const {
    if (table_.names_index == SHN_UNDEF || table_.names_index >= table_.count) return {};
    const auto names = read_section_header(file_, header_, table_.file_offset, table_.names_index);
    return names ? within_file(*names).value_or(Section{}) : Section{};
  }

  std::optional<Section> within_file(const SectionHeader& section) const {
    if ((section.flags & SHF_COMPRESSED) != 0) return std::nullopt;
    return stored(section);
  }

  std::optional<Section> stored(const SectionHeader& section) const {
    if (section.type == SHT_NOBITS) return std::nullopt;
    if (section.file_offset == 0 || section.size_bytes == 0 ||
        !range_fits(section.file_offset, section.size_bytes, file_.size_bytes())) {
      return std::nullopt;
    }
    return Section{{section.address}, section.file_offset, section.size_bytes, section.alignment};
  }

  void look_at(const SectionHeader& section) {
    switch (section.type) {
      case SHT_SYMTAB:
        return take_symbols(section, layout_.symtab);
      case SHT_DYNSYM:
        return take_symbols(section, layout_.dynsym);
      case SHT_NOTE:
        return take_note(section);
      case SHT_PROGBITS:
      case SHT_RELA:
      case SHT_X86_64_UNWIND:
        return take_named(section);
      default:
        return;
    }
  }

  void take_named(const SectionHeader& section) {
    const std::string_view name = names_.at(section.name);
    if (name == ".text") return take_text(section);
    if (name == ".eh_frame") return take_first(section, layout_.eh_frame);
    if (name == ".debug_frame") return take_debug_frame(section);
    if (name == ".zdebug_frame") return take_packed(section, true);
    if (name == ".gopclntab" || name == ".data.rel.ro.gopclntab") {
      return take_first(section, layout_.go.functions);
    }
    if (name == ".go.buildinfo") layout_.go.is_of_go = true;
    if (name == ".go.module") return take_first(section, layout_.go.module);
    if (name == ".data.rel.ro") return take_first(section, layout_.go.data_rel_ro);
    if (name == ".rela.dyn") return take_first(section, layout_.rela_dyn);
    if (name == ".rela.plt") return take_first(section, layout_.plt.relocations);
    if (name == ".plt") return take_first(section, layout_.plt.code[0]);
    if (name == ".plt.sec") return take_first(section, layout_.plt.code[1]);
    if (name == ".plt.got") return take_first(section, layout_.plt.code[2]);
    if (name == ".gnu_debugdata") return take_first(section, layout_.gnu_debugdata);
    if (name == ".eh_frame_hdr") return take_first(section, layout_.eh_frame_hdr);
  }

  // The first one decides even if it is empty, as symbolic does: object files have several.
  void take_text(const SectionHeader& section) {
    if (!text_was_seen_) layout_.text = within_file(section);
    text_was_seen_ = true;
  }

  void take_first(const SectionHeader& section, std::optional<Section>& place) const {
    if (!place) place = within_file(section);
  }

  void take_debug_frame(const SectionHeader& section) const {
    if ((section.flags & SHF_COMPRESSED) != 0) return take_packed(section, false);
    take_first(section, layout_.debug_frame);
  }

  void take_packed(const SectionHeader& section, bool has_gnu_header) const {
    const auto found = stored(section);
    if (found && !layout_.packed_debug_frame) layout_.packed_debug_frame = {*found, has_gnu_header};
  }

  void take_note(const SectionHeader& section) {
    const std::string_view name = names_.at(section.name);
    if (name == ".note.go.buildid") layout_.go.is_of_go = true;
    if (name != ".note.gnu.build-id") return;
    const auto note = within_file(section);
    if (note && layout_.notes.size() < Layout::kMaxNotes) layout_.notes.push_back(*note);
  }

  void take_symbols(const SectionHeader& section, std::optional<SymbolSection>& place) {
    const auto symbols = within_file(section);
    if (place || !symbols || section.link >= table_.count) return;
    if (++symbol_tables_tried_ > kMaxSymbolTables) return;
    const auto link = read_section_header(file_, header_, table_.file_offset, section.link);
    if (!link || link->type != SHT_STRTAB) return;
    if (const auto strings = within_file(*link)) place = SymbolSection{*symbols, *strings};
  }

  const ByteSource& file_;
  const FileHeader& header_;
  const SectionTable& table_;
  Layout& layout_;
  SectionNames names_;
  bool text_was_seen_ = false;
  size_t symbol_tables_tried_ = 0;
};

}  // namespace

SectionTable find_section_table(const ByteSource& file, const FileHeader& header) {
  if (header.section_headers_offset == 0 ||
      header.section_header_bytes != header.expected_section_header_bytes()) {
    return {};
  }
  const auto first = read_section_header(file, header, header.section_headers_offset, 0);
  if (!first) return {};
  SectionTable table;
  table.file_offset = header.section_headers_offset;
  table.extended_program_header_count = first->info;
  table.count = header.section_header_count;
  table.names_index = header.names_index;
  if (table.count == 0) table.count = first->size_bytes;
  if (table.names_index == SHN_XINDEX) table.names_index = first->link;
  if (table.count > kMaxSections ||
      !range_fits<uint64_t>(table.file_offset, table.count * header.section_header_bytes,
                            file.size_bytes())) {
    table.count = 0;
  }
  return table;
}

void scan_sections(const ByteSource& file, const FileHeader& header, const SectionTable& table,
                   Layout& layout) {
  if (table.count != 0) Scan(file, header, table, layout).run();
}

}  // namespace sentry_prof::elf
