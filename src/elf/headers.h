// The three headers of an ELF file, widened to 64 bits. Source: System V gABI, chapters 4 and 5.
#pragma once

#include "base/byte_reader.h"
#include "base/byte_source.h"
#include "sentry_prof/result.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sentry_prof::elf {

struct FileHeader {
  bool is_64_bit = true;
  std::endian order = std::endian::little;
  uint16_t type = 0, machine = 0;
  uint32_t flags = 0;
  uint64_t entry = 0;
  uint64_t program_headers_offset = 0, section_headers_offset = 0;
  uint16_t program_header_bytes = 0, section_header_bytes = 0;
  // As the header states them; the extended numbering is in section header 0.
  uint16_t program_header_count = 0, section_header_count = 0, names_index = 0;

  size_t expected_program_header_bytes() const { return is_64_bit ? 56 : 32; }
  size_t expected_section_header_bytes() const { return is_64_bit ? 64 : 40; }
};

struct ProgramHeader {
  uint32_t type = 0, flags = 0;
  uint64_t file_offset = 0, vaddr = 0, file_bytes = 0, memory_bytes = 0, alignment = 0;
};

struct SectionHeader {
  uint32_t name = 0, type = 0, link = 0, info = 0;
  uint64_t flags = 0, address = 0, file_offset = 0, size_bytes = 0, alignment = 0;
};

// Malformed if it is no ELF file, Unsupported for a class or byte order that does not exist.
Result<FileHeader> read_file_header(const ByteSource& file);

// Decode one header from a reader that stands at its begin; check the reader afterwards.
ProgramHeader decode_program_header(ByteReader& reader, bool is_64_bit);
SectionHeader decode_section_header(ByteReader& reader, bool is_64_bit);

}  // namespace sentry_prof::elf
