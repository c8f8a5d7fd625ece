// Builds .eh_frame, .eh_frame_hdr and .debug_frame sections by hand, in either byte order, address
// size and DWARF format.
#pragma once

#include "elf/cfi_table.h"
#include "support/elf_builder.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::elf_test {

using test::ByteWriter;

constexpr uint64_t kHeaderAddress = 0x1800;  // of .eh_frame_hdr

struct FrameKind {
  bool is_eh_frame = true;
  bool is_64_bit = true;          // ELF class: size of addresses
  bool is_64_bit_format = false;  // DWARF format: size of lengths
  std::endian order = std::endian::little;
  uint64_t address = 0x2000;
};

using Program = std::vector<uint8_t>;

// def_cfa rsp+8; offset ra at cfa-8.
inline const Program kUsualStart = {0x0c, 7, 8, 0x90, 1};

struct CieSpec {
  uint8_t version = 1;
  std::string augmentation = "zR";
  std::vector<uint8_t> augmentation_data = {0x00};  // behind 'z': its length is put before it
  std::vector<uint8_t> code_alignment = {1};
  std::vector<uint8_t> data_alignment = {0x78};  // -8
  std::vector<uint8_t> return_column = {16};
  Program program = kUsualStart;
  uint8_t address_bytes = 8, segment_bytes = 0;  // version 4
};

class FrameBuilder {
 public:
  explicit FrameBuilder(FrameKind kind = {}) : kind_(kind) {}

  // A CIE at the end; its offset.
  uint64_t cie(const CieSpec& spec = {}) {
    ByteWriter body = writer();
    body.u8(spec.version).text(spec.augmentation).u8(0);
    if (spec.version == 4) body.u8(spec.address_bytes).u8(spec.segment_bytes);
    put(body, spec.code_alignment);
    put(body, spec.data_alignment);
    put(body, spec.return_column);
    if (spec.augmentation.starts_with('z')) body.u8(spec.augmentation_data.size());
    put(body, spec.augmentation_data);
    put(body, spec.program);
    return entry(kind_.is_eh_frame ? 0 : ~uint64_t{0}, body);
  }

  // An FDE of the last CIE with absolute addresses; its offset. 'z' is taken to be set in
  // .eh_frame.
  uint64_t fde(uint64_t begin, uint64_t length, const Program& program = {}) {
    ByteWriter range = writer();
    range.word(begin).word(length);
    return fde_with_range(range.bytes(), program);
  }

  // The same with address and length encoded by the caller.
  uint64_t fde_with_range(const std::vector<std::byte>& range, const Program& program = {}) {
    ByteWriter body = writer();
    body.raw(range);
    if (kind_.is_eh_frame) body.u8(0);  // length of the augmentation data
    put(body, program);
    return fde_of_body(body.bytes());
  }

  uint64_t fde_of_body(const std::vector<std::byte>& body) {
    const uint64_t id_offset = size() + (kind_.is_64_bit_format ? 12 : 4);
    const uint64_t id = kind_.is_eh_frame ? id_offset - last_cie_ : last_cie_;
    ByteWriter bytes = writer();
    bytes.raw(body);
    return entry(id, bytes);
  }

  void terminator() { section_.u32(0); }
  void raw(const std::vector<uint8_t>& bytes) { put(section_, bytes); }

  // Address of the first byte behind the id of an FDE that is appended now.
  uint64_t next_body_address() const {
    const uint64_t id_bytes = kind_.is_64_bit_format && !kind_.is_eh_frame ? 8 : 4;
    return kind_.address + size() + (kind_.is_64_bit_format ? 12 : 4) + id_bytes;
  }

  ByteWriter writer() const { return ByteWriter(kind_.order, kind_.is_64_bit); }
  uint64_t size() const { return section_.size(); }

  elf::CfiSections sections() const {
    elf::CfiSections result;
    result.is_64_bit = kind_.is_64_bit;
    result.order = kind_.order;
    elf::CfiSection& section = kind_.is_eh_frame ? result.eh_frame : result.debug_frame;
    section = {{kind_.address}, section_.bytes()};
    return result;
  }

  // What a table of this section alone says.
  unwind::RowStatus row_at(uint64_t pc, unwind::Row& row) const {
    // The row's expressions point into the table: kept for the tests that look at them.
    kept_.push_back(std::make_shared<elf::CfiTable>(sections()));
    return kept_.back()->row_at({pc}, row);
  }

 private:
  static void put(ByteWriter& writer, const std::vector<uint8_t>& bytes) {
    for (const uint8_t byte : bytes) writer.u8(byte);
  }

  uint64_t entry(uint64_t id, const ByteWriter& body) {
    const uint64_t offset = size();
    const bool is_cie = kind_.is_eh_frame ? id == 0 : id == ~uint64_t{0};
    if (is_cie) last_cie_ = offset;
    const bool has_wide_id = kind_.is_64_bit_format && !kind_.is_eh_frame;
    const uint64_t length = body.size() + (has_wide_id ? 8 : 4);
    if (kind_.is_64_bit_format) section_.u32(0xffff'ffff).u64(length);
    if (!kind_.is_64_bit_format) section_.u32(length);
    if (has_wide_id) section_.u64(id);
    if (!has_wide_id) section_.u32(id);
    section_.raw(body.bytes());
    return offset;
  }

  FrameKind kind_;
  ByteWriter section_{kind_.order, kind_.is_64_bit};
  uint64_t last_cie_ = 0;
  mutable std::vector<std::shared_ptr<elf::CfiTable>> kept_;
};

// A row for the program of one FDE over [0x1000, 0x1100), behind the usual CIE or another.
struct RowOf {
  explicit RowOf(const Program& program, uint64_t pc = 0x1000, const CieSpec& cie = {}) {
    builder.cie(cie);
    builder.fde(0x1000, 0x100, program);
    status = builder.row_at(pc, row);
  }
  FrameBuilder builder;
  unwind::Row row;
  unwind::RowStatus status = unwind::RowStatus::NoCfi;
};

}  // namespace sentry_prof::elf_test
