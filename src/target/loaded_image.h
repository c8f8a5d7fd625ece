// An image that processes have mapped: its identity, and what it says of its code.
#pragma once

#include "base/byte_source.h"
#include "elf/cfi_table.h"
#include "elf/go_function_table.h"
#include "elf/identity.h"
#include "elf/layout.h"
#include "target/debug_cfi.h"
#include "target/mapping_facts.h"
#include "unwind/module_map.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sentry_prof::target {

// An ELF file that was mapped executable. Identity and layout are read when it is first seen, CFI
// when the first walk needs it. Immutable for readers apart from that; the file stays open.
//
// An image known by name only (its file could not be opened, or is another one by now) has an empty
// file and layout; its link addresses are file offsets.
class LoadedImage final : public unwind::CfiSource, public unwind::CodeSource {
 public:
  LoadedImage(unwind::ImageId id, std::string path, std::shared_ptr<const ByteSource> file,
              elf::Layout layout, elf::Identity identity, RuntimeAddress first_seen,
              std::shared_ptr<elf::CfiBudget> cfi_budget,
              std::unique_ptr<DebugFile> debug_file = nullptr);

  // Known by name only: `identity` may hold the build id that the kernel gave, but no debug id: for
  // that, others would look up link addresses, which are not known.
  static std::shared_ptr<LoadedImage> known_by_name(unwind::ImageId id, std::string path,
                                                    elf::Identity identity,
                                                    const MappingFacts& first_mapping);

  unwind::ImageId id() const { return id_; }
  const std::string& path() const { return path_; }  // without " (deleted)"
  const ByteSource& file() const { return *file_; }
  const elf::Layout& layout() const { return layout_; }
  const elf::Identity& identity() const { return identity_; }
  // Of the first PT_LOAD, where it was first mapped.
  RuntimeAddress first_seen() const { return first_seen_; }
  // From the first PT_LOAD to the end of the last; of an image known by name only, to the end of
  // its first mapping.
  uint64_t size_in_memory_bytes() const { return size_in_memory_bytes_; }
  bool is_known_by_name_only() const { return layout_.segments.empty(); }
  // Recording thread only. Its CFI could not be read because nobody answered.
  bool has_lost_cfi() const {
    const bool is_whole =
        cfi_ != nullptr && (go_functions_ != nullptr || !elf::may_have_go_functions(layout_));
    return cfi_was_tried_ && (!is_whole || debug_cfi_.has_lost_sections()) && file_->was_silent();
  }

  // Recording thread only: loads the CFI on first use.
  unwind::RowStatus row_at(LinkAddress pc, unwind::Row& row) const override;
  bool has_frame_pointers(LinkAddress pc) const override {
    return go_functions_ != nullptr && go_functions_->has_frame_pointers(pc);
  }
  // Any thread. Code is what executable segments have in the file.
  bool read_code(LinkAddress begin, std::span<std::byte> out) const override;
  uint32_t unanswered_reads() const override { return unanswered_reads_; }
  LinkAddress entry_point() const override { return layout_.entry; }
  // Recording thread only; what it gives is for any thread. Null if no walk needed the CFI so far.
  std::shared_ptr<const elf::FunctionStarts> function_starts() const;
  // Recording thread only; what it gives is for any thread. For an image that a walk needed and
  // that has no symbol table of its own: names of its functions are there. Null: there is none.
  std::shared_ptr<const ByteSource> debug_file() const;
  // Recording thread only: gives the CFI's memory back. There are no rows from then on.
  void forget_cfi();
  uint64_t cfi_bytes() const { return cfi_paid_bytes_ + debug_cfi_.memory_bytes(); }
  bool has_cfi() const { return cfi_ != nullptr; }  // loaded by a walk that needed it
  // Why there is no CFI (any more), or not all of it, for the summary; empty if it loaded or was
  // not needed yet.
  std::string cfi_error() const;
  // What is beyond that, in debug sections and files.
  const DebugCfi& debug_cfi() const { return debug_cfi_; }

 private:
  unwind::RowStatus signal_return_at(LinkAddress pc, unwind::Row& row,
                                     unwind::RowStatus otherwise) const;
  unwind::RowStatus cfi_row_at(LinkAddress pc, unwind::Row& row) const;
  unwind::RowStatus own_row_at(LinkAddress pc, unwind::Row& row) const;
  bool is_behind_start_code(LinkAddress pc, uint32_t& work) const;
  bool has_names_in_debug_file() const;
  void load_cfi() const;
  void load_tables() const;
  void load_go_functions() const;
  uint64_t tables_bytes() const;
  void pay_for_tables() const;

  unwind::ImageId id_;
  std::string path_;
  std::shared_ptr<const ByteSource> file_;
  elf::Layout layout_;
  elf::Identity identity_;
  RuntimeAddress first_seen_;
  uint64_t size_in_memory_bytes_;
  mutable std::unique_ptr<elf::CfiTable> cfi_;
  mutable std::unique_ptr<elf::GoFunctionTable> go_functions_;  // null: none that can be used
  mutable bool cfi_was_tried_ = false;
  mutable uint64_t cfi_paid_bytes_ = 0;
  std::shared_ptr<elf::CfiBudget> cfi_budget_;
  mutable std::string cfi_error_;
  mutable std::atomic<uint32_t> unanswered_reads_ = 0;
  std::unique_ptr<DebugFile> debug_file_;  // null: none is looked for
  mutable DebugCfi debug_cfi_;
};

}  // namespace sentry_prof::target
