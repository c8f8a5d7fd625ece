// Unwind information that an image does not have loaded: in its compressed .debug_frame (Go), in
// its MiniDebugInfo, or in a separate debug file.
#pragma once

#include "base/byte_source.h"
#include "elf/cfi_budget.h"
#include "elf/cfi_table.h"
#include "elf/layout.h"
#include "target/debug_file.h"
#include "unwind/row.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sentry_prof::target {

// Looked at in this order, each when none before covers an address. Recording thread only.
class DebugCfi {
 public:
  // `debug_file` may be null, and must live until forget().
  DebugCfi(std::shared_ptr<const ByteSource> file, DebugFile* debug_file,
           std::shared_ptr<elf::CfiBudget> budget)
      : file_(std::move(file)), debug_file_(debug_file), budget_(std::move(budget)) {}

  // As CfiSource::row_at(). `layout` is the image's, of the file. Never Root.
  unwind::RowStatus row_at(const elf::Layout& layout, LinkAddress pc, unwind::Row& row);

  uint64_t memory_bytes() const;
  // Gives all memory back. There are no rows from then on.
  void forget();

  // Whether any row was found.
  bool was_of_use() const { return was_of_use_; }
  // Whether something that the image's own file has could not be read because nobody answered.
  bool has_lost_sections() const { return has_lost_sections_; }
  // The first reason why something that was there could not be used; empty: none.
  std::string problem() const;

 private:
  enum class Place : uint8_t { OwnSection, MiniDebugInfo, DebugFile, None };
  struct Table {
    std::unique_ptr<elf::CfiTable> cfi;
    uint64_t paid_bytes = 0;
  };

  bool load_next(const elf::Layout& layout, unwind::Row& row);
  // The debug file is the next place, but nobody answers for it for now.
  bool waits_for_debug_file() const;
  void note_error(Place place, Error error);
  // False, and none is added, if it cannot be paid for.
  bool add_table(elf::CfiSections sections);
  Result<elf::CfiSections> load(Place place, const elf::Layout& layout);
  Result<elf::CfiSections> load_debug_file();
  Result<elf::CfiSections> load_from(Result<std::shared_ptr<const ByteSource>> file);
  void pay_for(Table& table);
  uint64_t limit_bytes() const;  // of one table
  elf::Expansion expansion() const { return {limit_bytes(), budget_->expandable_bytes_left}; }

  std::shared_ptr<const ByteSource> file_;
  DebugFile* debug_file_;
  std::shared_ptr<elf::CfiBudget> budget_;
  std::vector<Table> tables_;
  Place next_ = Place::OwnSection;
  bool was_of_use_ = false;
  bool has_lost_sections_ = false;
  unsigned times_gone_ = 0;  // that nobody was left of whom the debug file could be asked
  std::string problem_;
};

}  // namespace sentry_prof::target
