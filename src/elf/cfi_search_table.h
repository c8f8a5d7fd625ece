// .eh_frame_hdr: where .eh_frame is, and a sorted table of (first address, FDE).
// Source: LSB 5.0 Core, section 10.6.2 "The .eh_frame_hdr section".
#pragma once

#include "elf/cfi_entry.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sentry_prof::elf {

// The linker's claim, nothing more: whoever uses an answer has to look whether the FDE is one and
// covers the address.
class SearchTable {
 public:
  // Reads the head, and each kFenceDistance-th entry. None where the table is absent, of a kind
  // without fixed-size entries, or longer than its section. `header` describes .eh_frame_hdr as a
  // section.
  static std::optional<SearchTable> open(const FrameSection& header);

  uint64_t size() const { return count_; }
  // Beside the section.
  uint64_t memory_bytes() const { return fences_ ? fences_->capacity() * sizeof(uint64_t) : 0; }

  struct Entry {
    uint64_t begin;        // first address that the FDE covers
    uint64_t fde_address;  // where the FDE is; both are link addresses
  };

  // The last entry that begins at or below pc; none below the first.
  std::optional<Entry> find(uint64_t pc) const;

  // There is one at least.
  Entry first() const { return entry(0); }

  // Whether the entries rise, as they must for find() to mean anything: a pass over all of it.
  bool is_sorted() const;

 private:
  // Entries of 512 bytes. Of LLVM's 94,000 a search looks at a few cache lines then, most of the
  // others are those of the fences, which all searches share.
  static constexpr uint64_t kFenceDistance = 64;

  Entry entry(uint64_t index) const { return {value_at(2 * index), value_at(2 * index + 1)}; }
  uint64_t value_at(uint64_t field_index) const;
  void set_fences();

  FrameSection header_;
  uint64_t offset_ = 0;  // of the first entry
  uint64_t count_ = 0;
  uint8_t field_bytes_ = 4;      // an entry is two fields
  uint64_t sign_bit_ = 0;        // of a field; zero: they have none
  bool is_pc_relative_ = false;  // to the field itself
  uint64_t base_ = 0;
  // Where each kFenceDistance-th entry begins; null of a small table. Never changed.
  std::shared_ptr<const std::vector<uint64_t>> fences_;
};

// The link address of .eh_frame as .eh_frame_hdr states it; none if it does not.
std::optional<uint64_t> eh_frame_address(const FrameSection& header);

}  // namespace sentry_prof::elf
