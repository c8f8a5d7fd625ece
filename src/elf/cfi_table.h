// Call frame information of one image: .eh_frame (with or without .eh_frame_hdr) and .debug_frame.
// Sources: DWARF 5, section 6.4; LSB 5.0 Core, section 10.6 (.eh_frame, .eh_frame_hdr).
#pragma once

#include <bit>
#include <memory>
#include <vector>

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/layout.h"
#include "sentry_prof/result.h"
#include "unwind/registers.h"
#include "unwind/row.h"

namespace sentry_prof::elf {

// One section, copied once; nothing is ever read again from the file.
struct CfiSection {
  LinkAddress address;
  std::vector<std::byte> bytes;
};

struct CfiSections {
  bool is_64_bit = true;
  std::endian order = std::endian::little;
  LinkAddress entry;           // e_entry: an address right behind it without CFI is RowStatus::Root
  CfiSection eh_frame;         // empty bytes: absent
  CfiSection eh_frame_hdr;
  CfiSection debug_frame;
  LinkAddress text;            // base for DW_EH_PE_textrel; zero if unknown
};

// Copies the sections out of the file. An image without any CFI gives empty sections, not an error.
Result<CfiSections> read_cfi_sections(const ByteSource& file, const Layout& layout);

class CfiTable final : public unwind::CfiSource {
 public:
  explicit CfiTable(CfiSections sections);
  ~CfiTable() override;

  unwind::RowStatus row_at(LinkAddress pc, unwind::Row& row) const override;

  // For tests and tools: calls `visit(begin, end)` for every FDE, in file order.
  template <typename Visit>
  void for_each_fde(Visit&& visit) const;

  uint64_t memory_bytes() const;  // what this table holds

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sentry_prof::elf
