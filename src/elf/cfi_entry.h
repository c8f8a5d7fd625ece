// The entries of .eh_frame and .debug_frame: CIEs and FDEs.
// Sources: DWARF 5, section 6.4.1 (and DWARF 2-4 for older versions); LSB 5.0 Core, section 10.6.1.
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "elf/cfi_pointer.h"
#include "elf/section_in_file.h"

#include <bit>
#include <cstdint>
#include <optional>

namespace sentry_prof::elf {

// Limits far above what 4.7 million FDEs of 3,232 real files hold: longest program 60,755 bytes,
// highest register 32, one nested remember_state, longest expression 14 bytes. x86-64's APX has
// registers up to 145.
struct CfiLimits {
  static constexpr uint64_t kProgram_bytes = 128 << 10;
  static constexpr uint64_t kRegister = 255;
  static constexpr unsigned kRememberDepth = 16;
  static constexpr uint64_t kExpression_bytes = 1024;
  // Before its program an entry holds some 30 bytes. The limit keeps the padded LEB128 numbers of a
  // hostile CIE from being walked once for each of its FDEs.
  static constexpr uint64_t kHead_bytes = 64;
  // Of a section that is scanned. The largest .eh_frame known (a browser's) has a quarter of it.
  static constexpr uint64_t kEntries = uint64_t{1} << 22;
};

// A section of call frame information, and what is needed to read it. Offsets count from its start.
struct FrameSection {
  Bytes bytes;                             // owned by someone who outlives this
  const SectionInFile* in_file = nullptr;  // whose bytes these are; null: all have their values
  LinkAddress address;
  std::endian order = std::endian::little;
  uint8_t address_size_bytes = 8;  // of the ELF class; a CIE of version 4 states its own
  bool is_eh_frame = true;
  bool end_is_known = true;      // else the first terminator, or what is no entry, is behind it
  std::optional<uint64_t> text;  // base of DW_EH_PE_textrel

  // A reader for [begin, end) whose positions are section offsets; one that has failed where the
  // file cannot be read.
  ByteReader reader(uint64_t begin, uint64_t end) const;
};

// [begin, end) of a program's instructions, as section offsets.
struct ProgramRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

enum class EntryKind : uint8_t { Cie, Fde, Empty };

// The frame of one entry: what its length and id fields say.
struct Entry {
  EntryKind kind = EntryKind::Empty;
  uint64_t offset = 0;
  uint64_t body = 0;        // behind the id
  uint64_t end = 0;         // of this entry: the next one's offset; <= the section's size
  uint64_t cie_offset = 0;  // of an FDE; not checked

  // Where a reader of what stands before the program has to stop.
  uint64_t head_end() const;
};

struct Cie {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t return_address_register = 0;
  uint8_t address_size_bytes = 8;
  uint8_t fde_encoding = pointer_encoding::kAbsolute;
  bool has_augmentation_length = false;  // augmentation 'z'
  bool is_signal_frame = false;          // augmentation 'S'
  ProgramRange program;
};

struct Fde {
  uint64_t offset = 0;
  LinkAddress begin;  // begin == end for an FDE that covers nothing
  LinkAddress end;
  ProgramRange program;

  bool covers(LinkAddress pc) const { return begin <= pc && pc < end; }
};

// Malformed where the entry does not fit into the section. Entries of length zero (terminators; the
// linker may leave some in the middle) and those too short for an id are Empty.
CfiStatus read_entry(const FrameSection& section, uint64_t offset, Entry& entry);

// Parses the CIE at `offset`.
CfiStatus read_cie(const FrameSection& section, uint64_t offset, Cie& cie);

// Neighbouring FDEs share a CIE: the one that was parsed last is kept.
class LastCie {
 public:
  // Parses the CIE at `offset` of a section, always the same one, unless it is there already.
  CfiStatus read(const FrameSection& section, uint64_t offset);

  // What read() parsed; of use only if that was Ok.
  const Cie& cie() const { return cie_; }

 private:
  Cie cie_;
  CfiStatus status_ = CfiStatus::Ok;
  std::optional<uint64_t> offset_;
};

// Parses the FDE `entry`, whose CIE is `cie`.
CfiStatus read_fde(const FrameSection& section, const Entry& entry, const Cie& cie, Fde& fde);

// Bases for pointers in an FDE that begins at `function`, if that is known already.
PointerBases pointer_bases(const FrameSection& section, const Cie& cie,
                           std::optional<uint64_t> function);

// Walks the FDEs of a section in file order, without memory of its own. Those that cannot be read
// are left out.
class FdeScanner {
 public:
  explicit FdeScanner(const FrameSection& section, uint64_t max_entries = CfiLimits::kEntries)
      : section_(section), entries_left_(max_entries) {}

  // The next FDE that can be read; false at the end, where the chain of lengths breaks, or behind
  // `max_entries` entries of whatever kind.
  bool next(Fde& fde);

  // Why it did not get to the end of the section; Ok if it did, or may still.
  CfiStatus problem() const { return problem_; }
  // Of `max_entries`.
  uint64_t entries_left() const { return entries_left_; }

 private:
  bool next_entry(Entry& entry);
  bool ends(CfiStatus problem);
  CfiStatus read(const Entry& entry, Fde& fde);

  const FrameSection& section_;
  uint64_t offset_ = 0;
  uint64_t entries_left_;
  CfiStatus problem_ = CfiStatus::Ok;
  LastCie last_cie_;
};

}  // namespace sentry_prof::elf
