#include "target/debug_cfi.h"

#include "elf/packed_section.h"
#include "target/byte_order.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::target {
namespace {

using unwind::RowStatus;

// Go 1.19's largest tool has 500 KiB of .debug_frame in 13 MB, Debian's glibc 400 KiB in its debug
// file; a MiniDebugInfo has the symbols of one library. Expanding so much takes 0.1 s of zlib's
// time and 0.5 s of xz's.
constexpr uint64_t kMaxTable_bytes = uint64_t{32} << 20;
// Another process may come of which it can be asked. Where none does (a daemon's parent was asked,
// and has ended), code without rows would be worked out anew for ever.
constexpr unsigned kMaxTimesGone = 256;

}  // namespace

RowStatus DebugCfi::row_at(const elf::Layout& layout, LinkAddress pc, unwind::Row& row) {
  for (size_t i = 0; i < tables_.size() || load_next(layout, row); ++i) {
    Table& table = tables_[i];
    const RowStatus status = table.cfi->row_at(pc, row);
    pay_for(table);
    if (status == RowStatus::NoCfi) continue;
    was_of_use_ = was_of_use_ || status == RowStatus::Found;
    return status;
  }
  return RowStatus::NoCfi;
}

// False if there is no further place that has any, or none for now.
bool DebugCfi::load_next(const elf::Layout& layout, unwind::Row& row) {
  while (next_ != Place::None) {
    const Place place = next_;
    // To load it may be what nobody answers.
    auto sections = waits_for_debug_file() ? elf::CfiSections{} : load(place, layout);
    if (waits_for_debug_file()) {
      row.is_provisional = row.is_provisional || debug_file_->may_answer_soon();
      return false;
    }
    if (!sections && sections.error().code == ErrorCode::Gone) {
      if (++times_gone_ <= kMaxTimesGone) row.is_provisional = true;
      return false;
    }
    next_ = static_cast<Place>(static_cast<uint8_t>(place) + 1);
    if (!sections) {
      note_error(place, std::move(sections.error()));
    } else if (!sections->debug_frame.bytes.empty() && add_table(std::move(*sections))) {
      return true;
    }
  }
  return false;
}

bool DebugCfi::waits_for_debug_file() const {
  return next_ == Place::DebugFile && debug_file_ != nullptr && debug_file_->is_left_alone();
}

void DebugCfi::note_error(Place place, Error error) {
  const bool is_absent = error.code == ErrorCode::NotFound;
  const bool is_of_own_file = place != Place::DebugFile;
  if (is_of_own_file && error.code == ErrorCode::Io && file_->was_silent()) {
    has_lost_sections_ = true;
  }
  if (problem_.empty() && !is_absent) problem_ = std::move(error.message);
}

bool DebugCfi::add_table(elf::CfiSections sections) {
  auto cfi = std::make_unique<elf::CfiTable>(std::move(sections), budget_);
  if (cfi->memory_bytes() <= budget_->bytes_left) {
    pay_for(tables_.emplace_back(Table{std::move(cfi)}));
    return true;
  }
  if (problem_.empty()) problem_ = "larger than what is left of the memory for all images";
  return false;
}

Result<elf::CfiSections> DebugCfi::load(Place place, const elf::Layout& layout) {
  if (!check_byte_order(layout)) return elf::CfiSections{};  // the image itself tells of it
  if (place == Place::DebugFile) return load_debug_file();
  if (place == Place::MiniDebugInfo) {
    if (!layout.gnu_debugdata) return elf::CfiSections{};
    return load_from(elf::unpack_debugdata(*file_, layout, expansion()));
  }
  // A plain one is the image's own table's.
  if (layout.debug_frame) return elf::CfiSections{};
  return elf::read_debug_frame(*file_, layout, expansion());
}

Result<elf::CfiSections> DebugCfi::load_debug_file() {
  if (debug_file_ == nullptr) return elf::CfiSections{};
  const auto file = debug_file_->file();
  const bool was_silent = file && (*file)->was_silent();  // to whoever read its symbols
  auto sections = load_from(file);
  // What seems to be damaged or missing may only not have been read.
  const bool has_rows = sections && !sections->debug_frame.bytes.empty();
  const bool is_silent = !has_rows && file && !was_silent && (*file)->was_silent();
  if (is_silent) debug_file_->on_silence("its debug file's file system does not answer");
  return sections;
}

Result<elf::CfiSections> DebugCfi::load_from(Result<std::shared_ptr<const ByteSource>> file) {
  if (!file) return tl::unexpected(std::move(file.error()));
  const auto layout = elf::read_layout(**file);
  if (!layout) return tl::unexpected(layout.error());
  if (auto ok = check_byte_order(*layout); !ok) return tl::unexpected(std::move(ok.error()));
  return elf::read_debug_frame(**file, *layout, expansion());
}

// The first look-up makes an index, of no more than is left.
void DebugCfi::pay_for(Table& table) {
  const uint64_t owed_bytes =
      std::min(table.cfi->memory_bytes() - table.paid_bytes, budget_->bytes_left);
  budget_->bytes_left -= owed_bytes;
  table.paid_bytes += owed_bytes;
}

std::string DebugCfi::problem() const {
  std::string first = problem_;
  if (first.empty() && next_ == Place::DebugFile && debug_file_ != nullptr) {
    first = debug_file_->silence();
  }
  for (const Table& table : tables_) {
    if (first.empty()) first = table.cfi->problem();
  }
  return first;
}

uint64_t DebugCfi::memory_bytes() const {
  uint64_t sum = 0;
  for (const Table& table : tables_) sum += table.paid_bytes;
  return sum;
}

void DebugCfi::forget() {
  if (budget_) budget_->bytes_left += memory_bytes();
  tables_.clear();
  next_ = Place::None;
}

uint64_t DebugCfi::limit_bytes() const { return std::min(kMaxTable_bytes, budget_->bytes_left); }

}  // namespace sentry_prof::target
