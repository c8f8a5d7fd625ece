// From an address to its FDE and row, in one section.
#pragma once

#include "elf/cfi_budget.h"
#include "elf/cfi_entry.h"
#include "elf/cfi_index.h"
#include "elf/cfi_search_table.h"
#include "unwind/row.h"

#include <memory>
#include <optional>
#include <utility>

namespace sentry_prof::elf {

struct LinkRange {
  LinkAddress begin;
  LinkAddress end;  // behind it

  bool contains(LinkAddress address) const { return begin <= address && address < end; }
  bool operator==(const LinkRange&) const = default;
};

// Uses the linker's search table while its answers hold together, and with the first that does not
// builds an index of its own, which is asked first from then on. An address between the FDEs of a
// sorted table has none: libgcc's unwinder believes that too, so a table that left FDEs out would
// end the program at its first exception. Not for use by two threads, but the const functions of a
// copy are: what both hold is changed by row_at() alone.
class FrameLookup {
 public:
  // `budget`: of which an index may be made. Null: of a whole one.
  FrameLookup(const FrameSection& section, std::optional<SearchTable> table,
              std::shared_ptr<CfiBudget> budget)
      : section_(section), table_(table), budget_(std::move(budget)) {
    if (budget_ == nullptr) budget_ = std::make_shared<CfiBudget>();
  }

  // Never Root. A row is filled only if Found. Of what has no index for want of budget: NoCfi, and
  // the row says that it may be another time.
  unwind::RowStatus row_at(uint64_t pc, unwind::Row& row);

  // What the FDE that covers pc covers, by what is indexed now; none if that knows no FDE. Keeps
  // nothing: any thread may ask.
  std::optional<LinkRange> range_at(uint64_t pc) const;

  // The same of where the last FDE that begins at or before pc begins, whether it covers pc or not.
  std::optional<LinkAddress> last_begin(uint64_t pc) const;

  const FrameSection& section() const { return section_; }
  // For want of budget; it may be made later.
  bool lacks_index() const { return lacks_index_; }
  // The index is not of the whole section.
  bool breaks_off() const { return index_ != nullptr && index_->problem() != CfiStatus::Ok; }
  // Beside the section.
  uint64_t memory_bytes() const {
    return (table_ ? table_->memory_bytes() : 0) + (index_ ? index_->memory_bytes() : 0);
  }

 private:
  enum class TableAnswer : uint8_t { Found, Gap, Nonsense };

  // The FDE that covers pc; `cie` has its CIE then.
  unwind::RowStatus find(uint64_t pc, LastCie& cie, Fde& fde);
  TableAnswer ask_table(uint64_t pc, LastCie& cie, Fde& fde) const;
  bool table_is_sorted();
  bool make_index();
  bool may_have_index_later() const {
    return lacks_index_ && too_few_entries_ < CfiBudget::kMostIndexable_entries;
  }
  unwind::RowStatus find_by_index(uint64_t pc, LastCie& cie, Fde& fde) const;
  unwind::RowStatus read_covering(uint64_t offset, uint64_t pc, LastCie& cie, Fde& fde) const;

  FrameSection section_;
  LastCie last_cie_;
  std::optional<SearchTable> table_;
  std::optional<bool> table_is_sorted_;    // none: not looked at so far
  std::shared_ptr<const FdeIndex> index_;  // null: not needed so far, or not to be had
  std::shared_ptr<CfiBudget> budget_;
  bool lacks_index_ = false;
  uint64_t too_few_entries_ = 0;  // so many did not do for the index
};

}  // namespace sentry_prof::elf
