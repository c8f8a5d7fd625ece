#include "elf/cfi_search_table.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::elf {

namespace {

using namespace pointer_encoding;

constexpr uint8_t kVersion = 1;

// Pointers relative to "data" are relative to the start of .eh_frame_hdr here.
PointerBases bases_of(const FrameSection& header) {
  return {header.address_size_bytes, header.address.value, header.text, header.address.value,
          std::nullopt};
}

// Size of a field of the table; 0 for encodings that no binary search can use.
uint8_t fixed_size(uint8_t encoding, uint8_t address_size_bytes) {
  const uint8_t application = encoding & kApplicationMask;
  if ((encoding & kIndirect) != 0 || application == kTextRelative || application > kDataRelative) {
    return 0;
  }
  switch (encoding & kFormatMask) {
    case kAbsolute:
      return address_size_bytes;
    case kUdata2:
    case kSdata2:
      return 2;
    case kUdata4:
    case kSdata4:
      return 4;
    case kUdata8:
    case kSdata8:
      return 8;
    default:
      return 0;
  }
}

struct Head {
  std::optional<uint64_t> eh_frame;
  uint64_t fde_count = 0;
  uint8_t table_encoding = kOmit;
  uint64_t table_offset = 0;
};

std::optional<Head> read_head(const FrameSection& header) {
  ByteReader reader = header.reader(0, header.bytes.size());
  const uint8_t version = reader.u8();
  const uint8_t eh_frame_encoding = reader.u8();
  const uint8_t count_encoding = reader.u8();
  Head head;
  head.table_encoding = reader.u8();
  if (!reader.ok() || version != kVersion) return std::nullopt;
  uint64_t address = 0;
  if (read_pointer(reader, eh_frame_encoding, bases_of(header), address) != CfiStatus::Ok) {
    return std::nullopt;  // of unknown length, so what follows cannot be found either
  }
  head.eh_frame = address;
  if (read_pointer(reader, count_encoding, bases_of(header), head.fde_count) != CfiStatus::Ok) {
    head.fde_count = 0;
  }
  head.table_offset = reader.position();
  return head;
}

}  // namespace

std::optional<uint64_t> eh_frame_address(const FrameSection& header) {
  const std::optional<Head> head = read_head(header);
  return head ? head->eh_frame : std::nullopt;
}

std::optional<SearchTable> SearchTable::open(const FrameSection& header) {
  const std::optional<Head> head = read_head(header);
  if (!head || head->fde_count == 0) return std::nullopt;
  const uint8_t field_bytes = fixed_size(head->table_encoding, header.address_size_bytes);
  if (field_bytes == 0) return std::nullopt;
  const uint64_t room = header.bytes.size() - head->table_offset;
  if (head->fde_count > room / (2u * field_bytes)) return std::nullopt;
  SearchTable table;
  table.header_ = header;
  table.offset_ = head->table_offset;
  table.count_ = head->fde_count;
  table.field_bytes_ = field_bytes;
  const bool is_signed = (head->table_encoding & kFormatMask) >= kSleb128;
  if (is_signed) table.sign_bit_ = uint64_t{1} << (8 * field_bytes - 1);
  const uint8_t application = head->table_encoding & kApplicationMask;
  table.is_pc_relative_ = application == kPcRelative;
  if (application == kPcRelative || application == kDataRelative)
    table.base_ = header.address.value;
  table.set_fences();
  return table;
}

void SearchTable::set_fences() {
  if (count_ <= kFenceDistance) return;
  std::vector<uint64_t> fences;
  fences.reserve(static_cast<size_t>((count_ - 1) / kFenceDistance + 1));
  for (uint64_t i = 0; i < count_; i += kFenceDistance) fences.push_back(value_at(2 * i));
  fences_ = std::make_shared<const std::vector<uint64_t>>(std::move(fences));
}

// What read_pointer() does for these encodings, but this is the inner loop of a binary search.
uint64_t SearchTable::value_at(uint64_t field_index) const {
  const uint64_t offset = offset_ + field_index * field_bytes_;
  ByteReader reader(header_.bytes.subspan(static_cast<size_t>(offset), field_bytes_),
                    header_.order);
  const uint64_t field = field_bytes_ == 4   ? reader.u32()
                         : field_bytes_ == 2 ? reader.u16()
                                             : reader.u64();
  const uint64_t distance = (field ^ sign_bit_) - sign_bit_;  // with its sign extended
  const uint64_t base = is_pc_relative_ ? base_ + offset : base_;
  return (base + distance) & address_mask(header_.address_size_bytes);
}

std::optional<SearchTable::Entry> SearchTable::find(uint64_t pc) const {
  uint64_t low = 0;  // entries below it begin at or below pc
  uint64_t high = count_;
  if (fences_ != nullptr) {
    const auto behind = std::upper_bound(fences_->begin(), fences_->end(), pc);
    const auto fences_below = static_cast<uint64_t>(behind - fences_->begin());
    if (fences_below == 0) return std::nullopt;
    low = (fences_below - 1) * kFenceDistance;
    high = std::min(count_, low + kFenceDistance);
  }
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (value_at(2 * middle) <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  return entry(low - 1);
}

bool SearchTable::is_sorted() const {
  for (uint64_t i = 1; i < count_; ++i) {
    if (value_at(2 * (i - 1)) > value_at(2 * i)) return false;
  }
  return true;
}

}  // namespace sentry_prof::elf
