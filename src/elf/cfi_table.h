// Call frame information of one image: .eh_frame (with or without .eh_frame_hdr) and .debug_frame.
// Sources: DWARF 5, section 6.4; LSB 5.0 Core, section 10.6 (.eh_frame, .eh_frame_hdr).
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/cfi_budget.h"
#include "elf/layout.h"
#include "elf/packed_section.h"
#include "elf/section_in_file.h"
#include "sentry_prof/result.h"
#include "unwind/registers.h"
#include "unwind/row.h"

#include <bit>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sentry_prof::elf {

// One section: copied, or left in its file. No byte is ever read twice from the file.
struct CfiSection {
  LinkAddress address;
  std::vector<std::byte> bytes;                    // empty if `in_file` is there
  std::shared_ptr<const SectionInFile> in_file{};  // null: copied
  bool end_is_known = true;  // else it ends where its chain of entries does, at the latest here

  Bytes bytes_in_memory() const { return in_file ? in_file->bytes() : Bytes(bytes); }
  bool empty() const { return bytes_in_memory().empty(); }
};

struct CfiSections {
  bool is_64_bit = true;
  std::endian order = std::endian::little;
  LinkAddress entry;    // e_entry: an address right behind it without CFI is RowStatus::Root
  CfiSection eh_frame;  // empty: absent
  CfiSection eh_frame_hdr;
  CfiSection debug_frame;
  LinkAddress text;  // base for DW_EH_PE_textrel; zero if unknown
  // Why .eh_frame_hdr or .debug_frame is left out though the file has it; empty: none is.
  std::string problem;
};

// Copies the sections out of the file; for files without section headers .eh_frame from where
// .eh_frame_hdr says that it begins to the end of its segment, at most 64 MiB. An image without any
// CFI gives empty sections, not an error. Where .eh_frame is there, none of the other two is
// needed: `problem` says what they would have failed with. Io: the file ended early or cannot be
// read. LimitExceeded: a section of more than 64 MiB, or all of them together of more than
// `max_bytes`.
Result<CfiSections> read_cfi_sections(const ByteSource& file, const Layout& layout,
                                      uint64_t max_bytes = UINT64_MAX);

// The same, but .eh_frame is left in the file, where that can be read in pieces. `max_bytes` bounds
// its size as if it were copied. Null is not allowed.
Result<CfiSections> open_cfi_sections(const std::shared_ptr<const ByteSource>& file,
                                      const Layout& layout, uint64_t max_bytes = UINT64_MAX);

// Of a debug file, or what an image has beside .eh_frame: .debug_frame alone, stored plain or
// compressed, and no entry point; within `expansion`, of which a plain one does not take. Empty if
// there is none. Errors as above, and those of unpack_section().
Result<CfiSections> read_debug_frame(const ByteSource& file, const Layout& layout,
                                     const Expansion& expansion);

class FunctionStarts;  // elf/function_starts.h

// Cheap to make: of .eh_frame_hdr the head and one in 64 entries are read. Where that has a search
// table, the table is used as long as its answers hold, which those between two of its FDEs do if
// it is sorted; with the first that does not, and where there is none, the section is read once and
// an index built (16 bytes an FDE). Otherwise asking allocates nothing. One thread at a time, also
// for the const functions.
class CfiTable final : public unwind::CfiSource {
 public:
  // `budget` is what an index is made of, if one is needed; null: a whole one. What it takes is
  // paid for in entries; memory_bytes() tells of the rest.
  explicit CfiTable(CfiSections sections, std::shared_ptr<CfiBudget> budget = nullptr);
  ~CfiTable() override;

  // .eh_frame first, then .debug_frame. Found; NoCfi: no FDE that can be read covers `pc`; Root: no
  // row in either, but at most 63 bytes behind the entry point; Malformed or Unsupported: what
  // covers `pc` cannot be used, or no FDE is known to and .eh_frame cannot be read to its end.
  // Malformed also where the file cannot be read any more.
  unwind::RowStatus row_at(LinkAddress pc, unwind::Row& row) const override;

  // Where functions begin, by what is indexed now: for another thread, also while this table goes
  // on being used and after its end. It keeps the sections and the index alive. Never null.
  std::shared_ptr<const FunctionStarts> function_starts() const;

  // For tests and tools: visits every FDE that can be read, .eh_frame's first, in file order; those
  // that cover nothing have begin == end.
  void for_each_fde(const std::function<void(LinkAddress begin, LinkAddress end)>& visit) const;

  // What this table holds: sections, and what is made to find their FDEs; those left in the file as
  // if all were read.
  uint64_t memory_bytes() const;

  // Why addresses may not be found so far: the budget was too small for an index, or a section
  // breaks off. Empty: not known of any.
  std::string problem() const;

  // Whether a section that was left in the file could not be read when it was needed.
  bool has_unreadable_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sentry_prof::elf
