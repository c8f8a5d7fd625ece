#include "target/loaded_image.h"

#include "elf/signal_return.h"
#include "target/byte_order.h"
#include "unwind/start_code.h"

#include <algorithm>

#include <elf.h>

namespace sentry_prof::target {
namespace {

// Its call of rt_sigreturn has nine bytes at most; compilers put `ud2` behind it.
constexpr uint64_t kSignalReturnFunction_bytes = 16;

}  // namespace

LoadedImage::LoadedImage(unwind::ImageId id, std::string path,
                         std::shared_ptr<const ByteSource> file, elf::Layout layout,
                         elf::Identity identity, RuntimeAddress first_seen,
                         std::shared_ptr<elf::CfiBudget> cfi_budget,
                         std::unique_ptr<DebugFile> debug_file)
    : id_(id),
      path_(std::move(path)),
      file_(std::move(file)),
      layout_(std::move(layout)),
      identity_(std::move(identity)),
      first_seen_(first_seen),
      size_in_memory_bytes_(layout_.size_in_memory_bytes()),
      cfi_budget_(std::move(cfi_budget)),
      debug_file_(std::move(debug_file)),
      debug_cfi_(file_, debug_file_.get(), cfi_budget_) {}

std::shared_ptr<LoadedImage> LoadedImage::known_by_name(unwind::ImageId id, std::string path,
                                                        elf::Identity identity,
                                                        const MappingFacts& first_mapping) {
  auto no_bytes = std::make_shared<MemoryByteSource>(std::vector<std::byte>());
  const RuntimeAddress first_seen{first_mapping.begin.value - first_mapping.file_offset};
  auto image =
      std::make_shared<LoadedImage>(id, std::move(path), std::move(no_bytes), elf::Layout(),
                                    std::move(identity), first_seen, nullptr);
  image->size_in_memory_bytes_ = first_mapping.file_offset + first_mapping.size_bytes;
  return image;
}

unwind::RowStatus LoadedImage::row_at(LinkAddress pc, unwind::Row& row) const {
  const unwind::RowStatus status = cfi_row_at(pc, row);
  if (status == unwind::RowStatus::NoCfi) return signal_return_at(pc, row, status);
  if (status != unwind::RowStatus::Found) return status;
  // Of aarch64 also where there is a row: before Linux 5.8 it was wrong.
  if (row.is_signal_frame) {
    return layout_.machine == EM_AARCH64 ? signal_return_at(pc, row, status) : status;
  }
  // Written as a function, it has an ordinary row, no longer than its few bytes; so have many
  // others at their begin, whose code is then looked at once for each new rule. Asked of where the
  // row begins: the last byte of another function before it is no part of it.
  const bool may_be_all_of_it = row.begin == row.function_begin &&
                                row.end.value - row.begin.value <= kSignalReturnFunction_bytes;
  return may_be_all_of_it ? signal_return_at(row.begin, row, status) : status;
}

unwind::RowStatus LoadedImage::signal_return_at(LinkAddress pc, unwind::Row& row,
                                                unwind::RowStatus otherwise) const {
  return elf::signal_return_row(*file_, layout_, pc, row) ? unwind::RowStatus::Found : otherwise;
}

unwind::RowStatus LoadedImage::cfi_row_at(LinkAddress pc, unwind::Row& row) const {
  const unwind::RowStatus status = own_row_at(pc, row);
  if (status != unwind::RowStatus::NoCfi || is_known_by_name_only()) return status;
  return debug_cfi_.row_at(layout_, pc, row);
}

unwind::RowStatus LoadedImage::own_row_at(LinkAddress pc, unwind::Row& row) const {
  if (!cfi_was_tried_) load_cfi();
  if (go_functions_ == nullptr && cfi_ == nullptr) return unwind::RowStatus::NoCfi;
  unwind::RowStatus status = unwind::RowStatus::NoCfi;
  if (go_functions_ != nullptr) status = go_functions_->row_at(pc, row);
  if (status == unwind::RowStatus::NoCfi && cfi_ != nullptr) {
    status = cfi_->row_at(pc, row);
    const bool is_new = cfi_error_.empty() && cfi_->has_unreadable_bytes();
    if (is_new) cfi_error_ = ".eh_frame cannot be read from the file any more";
    pay_for_tables();
    if (status == unwind::RowStatus::Root && is_behind_start_code(pc, row.work)) {
      return unwind::RowStatus::NoCfi;
    }
  }
  return status;
}

// What elf::CfiTable takes for start code is another function's if that has ended before.
bool LoadedImage::is_behind_start_code(LinkAddress pc, uint32_t& work) const {
  return layout_.machine == EM_X86_64 && unwind::start_code_ends_before(*this, pc, work);
}

std::string LoadedImage::cfi_error() const {
  return cfi_error_.empty() && cfi_ != nullptr ? cfi_->problem() : cfi_error_;
}

bool LoadedImage::read_code(LinkAddress begin, std::span<std::byte> out) const {
  const bool is_read = elf::read_code(*file_, layout_, begin, out);
  // That the file has no code there may be counted, too: it costs the next walk the same question.
  if (!is_read && file_->was_silent()) ++unanswered_reads_;
  return is_read;
}

std::shared_ptr<const elf::FunctionStarts> LoadedImage::function_starts() const {
  return cfi_ == nullptr ? nullptr : cfi_->function_starts();
}

// Perhaps, and they are wanted.
bool LoadedImage::has_names_in_debug_file() const {
  return debug_file_ != nullptr && !layout_.symtab && debug_file_->may_be_kept();
}

std::shared_ptr<const ByteSource> LoadedImage::debug_file() const {
  if (!cfi_was_tried_ || !has_names_in_debug_file()) return nullptr;
  return debug_file_->file().value_or(nullptr);
}

void LoadedImage::forget_cfi() {
  debug_cfi_.forget();
  debug_file_.reset();
  if (cfi_budget_) cfi_budget_->bytes_left += cfi_paid_bytes_;
  cfi_paid_bytes_ = 0;
  cfi_.reset();
  go_functions_.reset();
}

uint64_t LoadedImage::tables_bytes() const {
  return (cfi_ ? cfi_->memory_bytes() : 0) + (go_functions_ ? go_functions_->memory_bytes() : 0);
}

// The first look-ups may make indexes, of no more than is left. Rows point into the tables: those
// are not given back for it.
void LoadedImage::pay_for_tables() const {
  const uint64_t owed_bytes = std::min(tables_bytes() - cfi_paid_bytes_, cfi_budget_->bytes_left);
  cfi_budget_->bytes_left -= owed_bytes;
  cfi_paid_bytes_ += owed_bytes;
}

// What cannot be paid for is given back.
void LoadedImage::load_cfi() const {
  cfi_was_tried_ = true;
  if (is_known_by_name_only()) return;
  load_tables();
  if (tables_bytes() <= cfi_budget_->bytes_left) return pay_for_tables();
  cfi_.reset();
  go_functions_.reset();
  cfi_error_ = "its tables are larger than what is left of the memory for all images";
}

void LoadedImage::load_tables() const {
  // Names are looked up at the end of a chunk, when the process may be gone.
  if (has_names_in_debug_file()) debug_file_->file();
  if (auto ok = check_byte_order(layout_); !ok) {
    cfi_error_ = std::move(ok.error().message);
    return;
  }
  load_go_functions();
  auto sections = elf::open_cfi_sections(file_, layout_, cfi_budget_->bytes_left - tables_bytes());
  if (!sections) {
    cfi_error_ = std::move(sections.error().message);
    return;
  }
  if (!sections->problem.empty()) cfi_error_ = std::move(sections->problem);
  cfi_ = std::make_unique<elf::CfiTable>(std::move(*sections), cfi_budget_);
}

// A table that is not there, or of another version of Go, is no problem: programs of old ones have
// unwind tables as well.
void LoadedImage::load_go_functions() const {
  auto table = elf::GoFunctionTable::open(*file_, layout_, cfi_budget_->bytes_left);
  if (table) {
    go_functions_ = std::move(*table);
    return;
  }
  const ErrorCode code = table.error().code;
  if (code == ErrorCode::NotFound || code == ErrorCode::Unsupported) return;
  cfi_error_ = std::move(table.error().message);
}

}  // namespace sentry_prof::target
