#include "elf/headers.h"

#include <array>
#include <cstring>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

uint64_t word(ByteReader& reader, bool is_64_bit) {
  return is_64_bit ? reader.u64() : reader.u32();
}

Result<FileHeader> decode_ident(std::span<const std::byte> ident) {
  if (std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0) {
    return fail(ErrorCode::Malformed, "not an ELF file");
  }
  FileHeader header;
  switch (std::to_integer<int>(ident[EI_CLASS])) {
    case ELFCLASS32:
      header.is_64_bit = false;
      break;
    case ELFCLASS64:
      header.is_64_bit = true;
      break;
    default:
      return fail(ErrorCode::Unsupported, "ELF class is neither 32 nor 64 bits");
  }
  switch (std::to_integer<int>(ident[EI_DATA])) {
    case ELFDATA2LSB:
      header.order = std::endian::little;
      break;
    case ELFDATA2MSB:
      header.order = std::endian::big;
      break;
    default:
      return fail(ErrorCode::Unsupported, "ELF byte order is neither little nor big endian");
  }
  return header;
}

}  // namespace

Result<FileHeader> read_file_header(const ByteSource& file) {
  std::array<std::byte, sizeof(Elf64_Ehdr)> bytes{};
  const std::span ident = std::span(bytes).first(EI_NIDENT);
  if (!file.read_at(0, ident)) return fail(ErrorCode::Malformed, "too short for an ELF file");
  Result<FileHeader> header = decode_ident(ident);
  if (!header) return header;

  const std::span whole =
      std::span(bytes).first(header->is_64_bit ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr));
  if (!file.read_at(0, whole)) return fail(ErrorCode::Malformed, "ELF header is cut off");
  ByteReader reader(whole, header->order);
  reader.skip(EI_NIDENT);
  header->type = reader.u16();
  header->machine = reader.u16();
  reader.skip(sizeof(Elf64_Word));  // e_version
  header->entry = word(reader, header->is_64_bit);
  header->program_headers_offset = word(reader, header->is_64_bit);
  header->section_headers_offset = word(reader, header->is_64_bit);
  header->flags = reader.u32();
  reader.skip(sizeof(Elf64_Half));  // e_ehsize
  header->program_header_bytes = reader.u16();
  header->program_header_count = reader.u16();
  header->section_header_bytes = reader.u16();
  header->section_header_count = reader.u16();
  header->names_index = reader.u16();
  return header;
}

ProgramHeader decode_program_header(ByteReader& reader, bool is_64_bit) {
  ProgramHeader header;
  header.type = reader.u32();
  if (is_64_bit) header.flags = reader.u32();
  header.file_offset = word(reader, is_64_bit);
  header.vaddr = word(reader, is_64_bit);
  reader.skip(is_64_bit ? sizeof(Elf64_Addr) : sizeof(Elf32_Addr));  // p_paddr
  header.file_bytes = word(reader, is_64_bit);
  header.memory_bytes = word(reader, is_64_bit);
  if (!is_64_bit) header.flags = reader.u32();
  header.alignment = word(reader, is_64_bit);
  return header;
}

SectionHeader decode_section_header(ByteReader& reader, bool is_64_bit) {
  SectionHeader header;
  header.name = reader.u32();
  header.type = reader.u32();
  header.flags = word(reader, is_64_bit);
  header.address = word(reader, is_64_bit);
  header.file_offset = word(reader, is_64_bit);
  header.size_bytes = word(reader, is_64_bit);
  header.link = reader.u32();
  header.info = reader.u32();
  header.alignment = word(reader, is_64_bit);
  word(reader, is_64_bit);  // sh_entsize: the types of sections that are read have one size each
  return header;
}

}  // namespace sentry_prof::elf
