// A .gopclntab made by hand: functions one behind the other, as Go 1.18 to 1.27 write them.
#pragma once

#include "support/elf_builder.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::test {

struct GoFunction {
  std::string name;
  uint32_t size_bytes = 0;
  uint8_t flags = 0;  // 1: outermost, 2: writes the stack pointer, 4: assembly
  // For so many bytes of code the stack pointer is so far below its place at the entry.
  std::vector<std::pair<uint32_t, int32_t>> depths;
};

struct GoTableOptions {
  uint32_t magic = 0xfffffff0;  // Go 1.18; 0xfffffff1: 1.20
  uint8_t quantum = 1;
  uint8_t pointer_bytes = 8;
  uint64_t text = 0x1000;
  uint32_t first = 0;  // where the first function begins, from `text`
};

inline void write_varint(ByteWriter& out, uint32_t value) {
  for (; value >= 0x80; value >>= 7) out.u8((value & 0x7f) | 0x80);
  out.u8(value);
}

inline std::vector<std::byte> pc_values(const GoFunction& function) {
  ByteWriter out;
  int32_t last = -1;
  for (const auto& [code_bytes, depth] : function.depths) {
    const int32_t change = depth - last;
    write_varint(out, change < 0 ? ~(static_cast<uint32_t>(change) << 1)
                                 : static_cast<uint32_t>(change) << 1);
    write_varint(out, code_bytes);
    last = depth;
  }
  return out.u8(0).bytes();
}

inline std::vector<std::byte> go_table(const std::vector<GoFunction>& functions,
                                       const GoTableOptions& options = {}) {
  constexpr uint64_t kHeader_bytes = 72;
  ByteWriter names, values, index, records;
  const size_t index_bytes = functions.size() * 8 + 4;
  uint32_t begin = options.first;
  values.u8(0);  // an offset of zero is no table
  for (const GoFunction& function : functions) {
    index.u32(begin).u32(index_bytes + records.size());
    records.u32(begin)
        .u32(names.size())
        .u32(0)
        .u32(0)
        .u32(values.size())
        .u32(0)
        .u32(0)
        .u32(0)
        .u32(0);
    if (options.magic == 0xfffffff1) records.u32(7);  // first line
    records.u8(0).u8(function.flags).u16(0);
    names.text(function.name).u8(0);
    values.raw(pc_values(function));
    begin += function.size_bytes;
  }
  index.u32(begin);
  ByteWriter table;
  table.u32(options.magic).u16(0).u8(options.quantum).u8(options.pointer_bytes);
  table.u64(functions.size()).u64(0).u64(options.text).u64(kHeader_bytes).u64(0).u64(0);
  table.u64(kHeader_bytes + names.size()).u64(kHeader_bytes + names.size() + values.size());
  return table.raw(names.bytes())
      .raw(values.bytes())
      .raw(index.bytes())
      .raw(records.bytes())
      .bytes();
}

// The moduledata of a program whose functions lie between `min_pc` and `max_pc`.
inline std::vector<std::byte> go_module(uint64_t text, uint64_t min_pc, uint64_t max_pc) {
  ByteWriter module;
  for (int i = 0; i < 20; ++i) module.u64(0x1111);
  return module.u64(min_pc).u64(max_pc).u64(text).u64(0).bytes();
}

// Where such a table is, if not in .gopclntab alone.
struct GoImageOptions {
  ElfKind kind = {};
  uint64_t address = 0x4000;           // of the section that has the table
  std::vector<std::byte> module = {};  // .go.module
  // In .data.rel.ro, behind so many bytes of which nothing looks like a table.
  std::optional<size_t> bytes_before = {};
  std::string mark = ".note.go.buildid";  // that it is of Go; or .go.buildinfo
  // Where and what; of relative ones.
  std::vector<std::pair<uint64_t, uint64_t>> relocations = {};
  uint64_t relocation_type = R_X86_64_RELATIVE;
};

// An image with such a table and, at 0x1000, `code`.
inline std::vector<std::byte> go_image(std::vector<std::byte> table,
                                       std::vector<std::byte> code = {},
                                       const GoImageOptions& options = {}) {
  code.resize(0x1000);
  ElfBuilder elf(options.kind);
  elf.section({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = 0x1000,
               .contents = std::move(code)});
  if (!options.mark.empty()) {
    elf.section(
        {.name = options.mark,
         .type = options.mark.starts_with(".note") ? uint32_t{SHT_NOTE} : uint32_t{SHT_PROGBITS},
         .contents = std::vector<std::byte>(32)});
  }
  table.insert(table.begin(), options.bytes_before.value_or(0), std::byte{0x11});
  elf.section({.name = options.bytes_before ? ".data.rel.ro" : ".gopclntab",
               .address = options.address,
               .contents = std::move(table)});
  if (!options.module.empty()) {
    elf.section({.name = ".go.module", .address = 0x8000, .contents = options.module});
  }
  if (!options.relocations.empty()) {
    ByteWriter relocations;
    for (const auto& [place, addend] : options.relocations) {
      relocations.u64(place).u64(options.relocation_type).u64(addend);
    }
    relocations.u32(0);  // no whole one
    elf.section({.name = ".rela.dyn", .type = SHT_RELA, .contents = relocations.bytes()});
  }
  elf.segment({.type = PT_LOAD, .flags = PF_R | PF_X, .of_section = ".text"});
  return elf.build();
}

}  // namespace sentry_prof::test
