#include "elf/cfi_table.h"

#include "elf/cfi_lookup.h"
#include "elf/frame_section.h"
#include "elf/function_starts.h"
#include "unwind/start_code.h"

#include <optional>
#include <string>
#include <utility>

namespace sentry_prof::elf {

using unwind::Row;
using unwind::RowStatus;

namespace {

std::optional<SearchTable> table_of(const CfiSections& sections) {
  return SearchTable::open(frame_section(sections, sections.eh_frame_hdr));
}

}  // namespace

struct CfiTable::Impl {
  Impl(CfiSections s, std::shared_ptr<CfiBudget> budget)
      : sections(std::make_shared<const CfiSections>(std::move(s))),
        eh_frame(frame_section(*sections, sections->eh_frame), table_of(*sections), budget),
        debug_frame(frame_section(*sections, sections->debug_frame, false), std::nullopt,
                    std::move(budget)) {}

  // _start has an FDE that ends the walk in most C libraries. Where it does, what follows it is
  // another function.
  bool is_start_code(LinkAddress pc) {
    const LinkAddress entry = sections->entry;
    if (entry.value == 0 || pc < entry || pc.value - entry.value >= unwind::kStartCode_bytes) {
      return false;
    }
    if (!entry_has_no_fde) {
      Row row;
      const bool has_none = eh_frame.row_at(entry.value, row) == RowStatus::NoCfi &&
                            debug_frame.row_at(entry.value, row) == RowStatus::NoCfi;
      if (row.is_provisional) return false;
      entry_has_no_fde = has_none;
    }
    return *entry_has_no_fde;
  }

  std::shared_ptr<const CfiSections> sections;
  FrameLookup eh_frame;
  FrameLookup debug_frame;
  std::optional<bool> entry_has_no_fde;  // asked once: its program may be long
};

CfiTable::CfiTable(CfiSections sections, std::shared_ptr<CfiBudget> budget)
    : impl_(std::make_unique<Impl>(std::move(sections), std::move(budget))) {}

CfiTable::~CfiTable() = default;

RowStatus CfiTable::row_at(LinkAddress pc, Row& row) const {
  const RowStatus in_eh_frame = impl_->eh_frame.row_at(pc.value, row);
  if (in_eh_frame == RowStatus::Found) return in_eh_frame;
  const RowStatus in_debug_frame = impl_->debug_frame.row_at(pc.value, row);
  if (in_debug_frame == RowStatus::Found) return in_debug_frame;
  if (impl_->is_start_code(pc)) return RowStatus::Root;
  return in_eh_frame == RowStatus::NoCfi ? in_debug_frame : in_eh_frame;
}

std::shared_ptr<const FunctionStarts> CfiTable::function_starts() const {
  return std::make_shared<FunctionStarts>(impl_->sections, impl_->eh_frame, impl_->debug_frame);
}

void CfiTable::for_each_fde(
    const std::function<void(LinkAddress begin, LinkAddress end)>& visit) const {
  for (const FrameLookup* lookup : {&impl_->eh_frame, &impl_->debug_frame}) {
    FdeScanner scanner(lookup->section());
    for (Fde fde; scanner.next(fde);) visit(fde.begin, fde.end);
  }
}

uint64_t CfiTable::memory_bytes() const {
  const CfiSections& sections = *impl_->sections;
  return sizeof(Impl) + sizeof(CfiSections) + sections.eh_frame.bytes_in_memory().size() +
         sections.eh_frame_hdr.bytes.capacity() + sections.debug_frame.bytes.capacity() +
         impl_->eh_frame.memory_bytes() + impl_->debug_frame.memory_bytes();
}

std::string CfiTable::problem() const {
  if (impl_->eh_frame.lacks_index() || impl_->debug_frame.lacks_index()) {
    return "its index is larger than what is left for all images";
  }
  if (impl_->eh_frame.breaks_off()) return ".eh_frame cannot be read to its end";
  return impl_->debug_frame.breaks_off() ? ".debug_frame cannot be read to its end" : "";
}

bool CfiTable::has_unreadable_bytes() const {
  const auto& in_file = impl_->sections->eh_frame.in_file;
  return in_file != nullptr && in_file->has_unreadable_blocks();
}

}  // namespace sentry_prof::elf
