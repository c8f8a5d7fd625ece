#include "elf/cfi_lookup.h"

#include "elf/cfi_program.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::elf {

using unwind::Row;
using unwind::RowStatus;

namespace {

RowStatus to_row_status(CfiStatus status, RowStatus if_ok) {
  switch (status) {
    case CfiStatus::Malformed:
      return RowStatus::Malformed;
    case CfiStatus::Unsupported:
      return RowStatus::Unsupported;
    case CfiStatus::Ok:
      break;
  }
  return if_ok;
}

}  // namespace

RowStatus FrameLookup::row_at(uint64_t pc, Row& row) {
  if (section_.bytes.empty()) return RowStatus::NoCfi;
  Fde fde;
  const RowStatus status = find(pc, last_cie_, fde);
  if (status != RowStatus::Found) {
    row.is_provisional = row.is_provisional || may_have_index_later();
    return status;
  }
  return to_row_status(evaluate_row(section_, last_cie_.cie(), fde, pc, row), RowStatus::Found);
}

RowStatus FrameLookup::find(uint64_t pc, LastCie& cie, Fde& fde) {
  if (!index_) {
    const TableAnswer answer = ask_table(pc, cie, fde);
    if (answer == TableAnswer::Found) return RowStatus::Found;
    if (answer == TableAnswer::Gap && table_is_sorted()) return RowStatus::NoCfi;
    if (!make_index()) return RowStatus::NoCfi;
  }
  return find_by_index(pc, cie, fde);
}

// The entries that were read for nothing are paid for as well: they took their time.
bool FrameLookup::make_index() {
  const uint64_t affordable =
      std::min(budget_->indexable_entries_left, budget_->bytes_left / FdeIndex::kItem_bytes);
  // After so many more that what is read for nothing adds up to little.
  const uint64_t enough = std::min(2 * too_few_entries_, CfiBudget::kMostIndexable_entries);
  lacks_index_ = affordable <= too_few_entries_ || affordable < enough;
  if (lacks_index_) return false;
  auto index = std::make_shared<FdeIndex>();
  const uint64_t read = index->build(section_, affordable);
  budget_->indexable_entries_left -= read;
  lacks_index_ = index->problem() == CfiStatus::Unsupported && read == affordable;
  if (lacks_index_) {
    too_few_entries_ = affordable;
    return false;
  }
  index_ = std::move(index);
  return true;
}

std::optional<LinkRange> FrameLookup::range_at(uint64_t pc) const {
  LastCie cie;
  Fde fde;
  const bool is_found = index_ ? find_by_index(pc, cie, fde) == RowStatus::Found
                               : ask_table(pc, cie, fde) == TableAnswer::Found;
  return is_found ? std::optional(LinkRange{fde.begin, fde.end}) : std::nullopt;
}

// The later of what both know: the section may break off before an FDE that the table has.
std::optional<LinkAddress> FrameLookup::last_begin(uint64_t pc) const {
  std::optional<LinkAddress> begin;
  if (index_) {
    if (const auto indexed = index_->last_begin(pc)) begin = LinkAddress{*indexed};
  }
  LastCie cie;
  Fde fde;
  const bool is_answered = ask_table(pc, cie, fde) != TableAnswer::Nonsense;
  if (is_answered && fde.begin.value <= pc && (!begin || *begin < fde.begin)) begin = fde.begin;
  return begin;
}

// A gap, only if the entry below it, or the first one above, tells the truth about its FDE.
FrameLookup::TableAnswer FrameLookup::ask_table(uint64_t pc, LastCie& cie, Fde& fde) const {
  if (!table_) return TableAnswer::Nonsense;
  const std::optional<SearchTable::Entry> below = table_->find(pc);
  const SearchTable::Entry entry = below ? *below : table_->first();
  const uint64_t offset =
      entry.fde_address - section_.address.value;  // a wrapped one is past the end
  const RowStatus status = read_covering(offset, pc, cie, fde);
  if (status == RowStatus::Found) return TableAnswer::Found;
  const bool is_true =
      status == RowStatus::NoCfi && fde.begin.value == entry.begin && fde.begin < fde.end;
  const bool is_beside = below ? fde.end.value <= pc : fde.begin.value > pc;
  return is_true && is_beside ? TableAnswer::Gap : TableAnswer::Nonsense;
}

bool FrameLookup::table_is_sorted() {
  if (!table_is_sorted_) table_is_sorted_ = table_->is_sorted();
  return *table_is_sorted_;
}

RowStatus FrameLookup::find_by_index(uint64_t pc, LastCie& cie, Fde& fde) const {
  const std::optional<uint64_t> offset = index_->find(pc);
  if (offset) return read_covering(*offset, pc, cie, fde);
  // The section may break off before an FDE that the table knows.
  if (ask_table(pc, cie, fde) == TableAnswer::Found) return RowStatus::Found;
  // .debug_frame is of the parts of a program that were built with debug info: of the others it
  // says nothing, broken off or whole.
  return section_.is_eh_frame ? to_row_status(index_->problem(), RowStatus::NoCfi)
                              : RowStatus::NoCfi;
}

RowStatus FrameLookup::read_covering(uint64_t offset, uint64_t pc, LastCie& cie, Fde& fde) const {
  Entry entry;
  CfiStatus status = read_entry(section_, offset, entry);
  if (status == CfiStatus::Ok && entry.kind != EntryKind::Fde) status = CfiStatus::Malformed;
  if (status == CfiStatus::Ok) status = cie.read(section_, entry.cie_offset);
  if (status == CfiStatus::Ok) status = read_fde(section_, entry, cie.cie(), fde);
  if (status != CfiStatus::Ok) return to_row_status(status, RowStatus::Found);
  return fde.covers({pc}) ? RowStatus::Found : RowStatus::NoCfi;
}

}  // namespace sentry_prof::elf
