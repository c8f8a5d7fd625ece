// Small ELF files in memory, well-formed unless a test patches them: 32 and 64 bits, both byte
// orders, with or without section headers.
//
//   ElfBuilder elf({.machine = EM_ARM, .is_64_bit = false});
//   elf.section({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = 0x1000, .contents
//   = code}); elf.segment({.type = PT_LOAD, .flags = PF_R | PF_X, .of_section = ".text"});
//   MemoryByteSource file(elf.build());
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <elf.h>

namespace sentry_prof::test {

// Appends numbers in either byte order.
class ByteWriter {
 public:
  explicit ByteWriter(std::endian order = std::endian::little, bool is_64_bit = true)
      : order_(order), is_64_bit_(is_64_bit) {}

  ByteWriter& u8(uint64_t value) { return number(value, 1); }
  ByteWriter& u16(uint64_t value) { return number(value, 2); }
  ByteWriter& u32(uint64_t value) { return number(value, 4); }
  ByteWriter& u64(uint64_t value) { return number(value, 8); }
  ByteWriter& word(uint64_t value) { return number(value, is_64_bit_ ? 8 : 4); }
  ByteWriter& raw(const std::vector<std::byte>& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  ByteWriter& text(std::string_view text) {
    for (char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  ByteWriter& zeros_until(uint64_t size) {
    if (size > bytes_.size()) bytes_.resize(static_cast<size_t>(size));
    return *this;
  }
  ByteWriter& aligned(uint64_t alignment) {
    while (alignment > 1 && bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
    return *this;
  }

  uint64_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  ByteWriter& number(uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const unsigned place = order_ == std::endian::little ? i : count - 1 - i;
      bytes_.push_back(static_cast<std::byte>(value >> (8 * place) & 0xff));
    }
    return *this;
  }

  std::endian order_;
  bool is_64_bit_;
  std::vector<std::byte> bytes_;
};

struct ElfKind {
  uint16_t machine = EM_X86_64;
  bool is_64_bit = true;
  std::endian order = std::endian::little;
  uint16_t type = ET_DYN;
  uint32_t flags = 0;
  uint64_t entry = 0;
  bool with_section_headers = true;
};

struct ElfSection {
  std::string name;
  uint32_t type = SHT_PROGBITS;
  uint64_t flags = SHF_ALLOC;
  uint64_t address = 0;
  std::vector<std::byte> contents = {};
  uint64_t alignment = 1;
  std::string link = {};                     // name of the section that sh_link names
  std::optional<uint64_t> file_offset = {};  // where to put it; else behind the one before
  std::optional<uint64_t> stated_size = {};  // sh_size, where it is not the contents' size
};

struct ElfSegment {
  uint32_t type = PT_LOAD;
  uint32_t flags = PF_R;
  std::string of_section =
      {};  // takes its offset, address, sizes and alignment from this section, or
  uint64_t file_offset = 0, vaddr = 0, file_bytes = 0, memory_bytes = 0, alignment = 0x1000;
};

class ElfBuilder {
 public:
  explicit ElfBuilder(ElfKind kind = {}) : kind_(kind) {}

  ElfBuilder& section(ElfSection section) {
    sections_.push_back(std::move(section));
    return *this;
  }
  ElfBuilder& segment(ElfSegment segment) {
    segments_.push_back(std::move(segment));
    return *this;
  }

  ByteWriter writer() const { return ByteWriter(kind_.order, kind_.is_64_bit); }

  // ELF header, program headers, sections in the order given, .shstrtab, section headers.
  std::vector<std::byte> build() const {
    const Placed placed = place();
    ByteWriter file = writer();
    write_file_header(file, placed);
    for (const ElfSegment& segment : segments_)
      write_program_header(file, resolved(segment, placed));
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (sections_[i].type == SHT_NOBITS) continue;
      file.zeros_until(placed.offsets[i]).raw(sections_[i].contents);
    }
    if (kind_.with_section_headers) write_section_headers(file, placed);
    return file.bytes();
  }

 private:
  struct Placed {
    std::vector<uint64_t> offsets;       // of each section
    std::vector<uint64_t> name_offsets;  // in .shstrtab
    std::string names = std::string("\0.shstrtab\0", 11);
    uint64_t names_offset = 0, headers_offset = 0;
  };

  uint64_t file_header_bytes() const { return kind_.is_64_bit ? 64 : 52; }
  uint64_t program_header_bytes() const { return kind_.is_64_bit ? 56 : 32; }
  uint64_t section_header_bytes() const { return kind_.is_64_bit ? 64 : 40; }

  Placed place() const {
    Placed placed;
    uint64_t end = file_header_bytes() + segments_.size() * program_header_bytes();
    for (const ElfSection& section : sections_) {
      const uint64_t alignment = std::max<uint64_t>(section.alignment, 1);
      const uint64_t next = (end + alignment - 1) / alignment * alignment;
      placed.offsets.push_back(section.file_offset.value_or(next));
      if (section.type != SHT_NOBITS) end = placed.offsets.back() + section.contents.size();
      placed.name_offsets.push_back(placed.names.size());
      placed.names += section.name + '\0';
    }
    placed.names_offset = end;
    placed.headers_offset = (end + placed.names.size() + 7) / 8 * 8;
    return placed;
  }

  size_t index_of(const std::string& name) const {
    const auto found = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const ElfSection& s) { return s.name == name; });
    return static_cast<size_t>(found - sections_.begin());
  }

  ElfSegment resolved(ElfSegment segment, const Placed& placed) const {
    if (segment.of_section.empty()) return segment;
    const ElfSection& section = sections_.at(index_of(segment.of_section));
    segment.file_offset = placed.offsets.at(index_of(segment.of_section));
    segment.vaddr = section.address;
    segment.file_bytes = segment.memory_bytes = section.contents.size();
    segment.alignment = section.alignment;
    return segment;
  }

  void write_file_header(ByteWriter& file, const Placed& placed) const {
    file.text(ELFMAG).u8(kind_.is_64_bit ? ELFCLASS64 : ELFCLASS32);
    file.u8(kind_.order == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB).u8(EV_CURRENT);
    file.zeros_until(EI_NIDENT).u16(kind_.type).u16(kind_.machine).u32(EV_CURRENT);
    file.word(kind_.entry).word(segments_.empty() ? 0 : file_header_bytes());
    file.word(kind_.with_section_headers ? placed.headers_offset : 0).u32(kind_.flags);
    file.u16(file_header_bytes()).u16(program_header_bytes()).u16(segments_.size());
    file.u16(section_header_bytes());
    file.u16(kind_.with_section_headers ? sections_.size() + 2 : 0);
    file.u16(kind_.with_section_headers ? sections_.size() + 1 : 0);
  }

  void write_program_header(ByteWriter& file, const ElfSegment& segment) const {
    file.u32(segment.type);
    if (kind_.is_64_bit) file.u32(segment.flags);
    file.word(segment.file_offset).word(segment.vaddr).word(segment.vaddr);
    file.word(segment.file_bytes).word(segment.memory_bytes);
    if (!kind_.is_64_bit) file.u32(segment.flags);
    file.word(segment.alignment);
  }

  void write_section_headers(ByteWriter& file, const Placed& placed) const {
    file.zeros_until(placed.names_offset).text(placed.names).zeros_until(placed.headers_offset);
    file.zeros_until(placed.headers_offset + section_header_bytes());
    for (size_t i = 0; i < sections_.size(); ++i) {
      const ElfSection& section = sections_[i];
      const uint64_t link = section.link.empty() ? 0 : index_of(section.link) + 1;
      file.u32(placed.name_offsets[i]).u32(section.type).word(section.flags);
      file.word(section.address).word(placed.offsets[i]);
      file.word(section.stated_size.value_or(section.contents.size()));
      file.u32(link).u32(0).word(section.alignment).word(entry_bytes(section.type));
    }
    file.u32(1).u32(SHT_STRTAB).word(0).word(0).word(placed.names_offset);
    file.word(placed.names.size()).u32(0).u32(0).word(1).word(0);
  }

  uint64_t entry_bytes(uint32_t section_type) const {
    if (section_type != SHT_SYMTAB && section_type != SHT_DYNSYM) return 0;
    return kind_.is_64_bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  }

  ElfKind kind_;
  std::vector<ElfSection> sections_;
  std::vector<ElfSegment> segments_;
};

inline std::vector<std::byte> to_bytes(std::string_view text) {
  return ByteWriter().text(text).bytes();
}

// One note with its padding; `name` without the NUL that is added.
inline std::vector<std::byte> elf_note(std::endian order, std::string_view name, uint32_t type,
                                       const std::vector<std::byte>& description,
                                       uint64_t alignment = 4) {
  ByteWriter note(order);
  note.u32(name.size() + 1).u32(description.size()).u32(type).text(name).u8(0).aligned(alignment);
  return note.raw(description).aligned(alignment).bytes();
}

// The contents of .symtab (or .dynsym) and of its string table.
class SymbolTableBuilder {
 public:
  explicit SymbolTableBuilder(ElfKind kind = {})
      : is_64_bit_(kind.is_64_bit), symbols_(kind.order, kind.is_64_bit) {
    add({});
  }

  struct Symbol {
    std::string name;
    uint64_t value = 0, size_bytes = 0;
    uint8_t type = STT_NOTYPE, binding = STB_LOCAL;
    uint16_t section = SHN_UNDEF;
  };

  SymbolTableBuilder& add(const Symbol& symbol) {
    const uint64_t name = symbol.name.empty() ? 0 : strings_.size();
    if (!symbol.name.empty()) strings_ += symbol.name + '\0';
    const int info = symbol.binding << 4 | symbol.type;
    symbols_.u32(name);
    if (is_64_bit_) {
      symbols_.u8(info).u8(0).u16(symbol.section).u64(symbol.value).u64(symbol.size_bytes);
    } else {
      symbols_.u32(symbol.value).u32(symbol.size_bytes).u8(info).u8(0).u16(symbol.section);
    }
    return *this;
  }

  std::vector<std::byte> symbols() const { return symbols_.bytes(); }
  std::vector<std::byte> strings() const { return to_bytes(strings_); }

 private:
  bool is_64_bit_;
  ByteWriter symbols_;
  std::string strings_ = std::string(1, '\0');
};

}  // namespace sentry_prof::test
