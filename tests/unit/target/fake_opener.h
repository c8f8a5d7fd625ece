// An opener that hands out files made by a test, and counts.
#pragma once

#include "support/elf_builder.h"
#include "target/image_opener.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace sentry_prof::test {

class FakeOpener final : public target::ImageOpener {
 public:
  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts& mapping) override {
    opened.push_back(mapping.path);
    const auto in_place = files_in_place.find(mapping.begin.value);
    if (in_place != files_in_place.end()) {
      return std::make_shared<MemoryByteSource>(in_place->second);
    }
    return open_by_path(mapping);
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(
      const target::MappingFacts& mapping) override {
    opened_by_path.push_back(mapping.path);
    if (ended.contains(mapping.pid)) return fail(ErrorCode::Gone, "its process ended");
    if (is_full) return fail(ErrorCode::LimitExceeded, "too many open files");
    if (silent.contains(mapping.path)) return fail(ErrorCode::Io, "does not answer");
    const auto found = files.find(mapping.path);
    if (found == files.end()) return fail(ErrorCode::NotFound, "no such file");
    return std::make_shared<MemoryByteSource>(found->second);
  }
  Result<std::shared_ptr<const ByteSource>> open_mapped(
      const target::MappingFacts& mapping) override {
    if (silent_when_mapped.contains(mapping.path)) return fail(ErrorCode::Io, "does not answer");
    const auto found = mapped_files.find(mapping.begin.value);
    if (found == mapped_files.end()) return fail(ErrorCode::NotFound, "not mapped any more");
    return std::make_shared<MemoryByteSource>(found->second);
  }
  bool name_is_literal(const target::MappingFacts& mapping) override {
    return literal_names.contains(mapping.path);
  }

  bool is_full = false;  // too many files are open
  std::map<std::string, std::vector<std::byte>> files;
  std::map<uint64_t, std::vector<std::byte>> files_in_place;  // by address, whatever their names
  std::map<uint64_t, std::vector<std::byte>> mapped_files;    // by address, as processes have them
  std::set<std::string> silent;                               // paths of which nobody answers
  std::set<std::string> silent_when_mapped;                   // when they are read in processes
  std::set<uint32_t> ended;                                   // processes
  std::set<std::string> literal_names;
  std::vector<std::string> opened, opened_by_path;
};

inline std::vector<std::byte> build_id_of(uint8_t first) {
  std::vector<std::byte> id(20, std::byte{0x11});
  id[0] = std::byte{first};
  return id;
}

// A library whose code has file offset 0x1000 and link address 0x3000, 0x1000 bytes long; its first
// segment has link address 0x1000 and `head_bytes`, so that runtime begin of the code = bias +
// 0x3000.
inline std::vector<std::byte> make_library(const std::vector<std::byte>& build_id,
                                           const std::vector<std::byte>& debug_frame = {},
                                           ElfKind kind = {}, uint64_t head_bytes = 0x400) {
  ElfBuilder elf(kind);
  if (!build_id.empty()) {
    elf.section({.name = ".note.gnu.build-id",
                 .type = SHT_NOTE,
                 .address = 0x1300,
                 .contents = elf_note(kind.order, "GNU", NT_GNU_BUILD_ID, build_id),
                 .alignment = 4,
                 .file_offset = 0x300});
    elf.segment({.type = PT_NOTE, .of_section = ".note.gnu.build-id"});
  }
  elf.section({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = 0x3000,
               .contents = std::vector<std::byte>(0x1000, std::byte{0x90}),
               .alignment = 16,
               .file_offset = 0x1000});
  if (!debug_frame.empty()) {
    elf.section({.name = ".debug_frame", .flags = 0, .contents = debug_frame});
  }
  elf.segment(
      {.flags = PF_R, .vaddr = 0x1000, .file_bytes = head_bytes, .memory_bytes = head_bytes});
  elf.segment({.flags = PF_R | PF_X,
               .file_offset = 0x1000,
               .vaddr = 0x3000,
               .file_bytes = 0x1000,
               .memory_bytes = 0x1000});
  return elf.build();
}

// As /proc/PID/maps tells of that library's code.
inline target::MappingFacts code_of(std::string path, uint64_t begin, uint64_t inode = 7,
                                    std::vector<std::byte> build_id = {}) {
  target::MappingFacts mapping;
  mapping.pid = 100;
  mapping.begin = {begin};
  mapping.size_bytes = 0x1000;
  mapping.file_offset = 0x1000;
  mapping.build_id = std::move(build_id);
  mapping.device_major = mapping.build_id.empty() ? 8 : 0;
  mapping.inode = mapping.build_id.empty() ? inode : 0;
  mapping.path = std::move(path);
  return mapping;
}

}  // namespace sentry_prof::test
