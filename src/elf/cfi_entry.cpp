#include "elf/cfi_entry.h"

#include <algorithm>

namespace sentry_prof::elf {

namespace {

constexpr uint32_t kLengthOf64BitFormat = 0xffff'ffff;  // DWARF 5, section 7.4
constexpr uint32_t kFirstReservedLength = 0xffff'fff0;
constexpr uint64_t kMaxLengthAndId_bytes = 4 + 8 + 8;

// .eh_frame's CIE pointer counts backwards from its own field, and zero marks a CIE. It has four
// bytes also in the 64-bit format (LSB 5.0, table 10-5), unlike that of .debug_frame.
void read_eh_frame_id(ByteReader& reader, Entry& entry) {
  const uint64_t field = reader.position();
  const uint32_t distance = reader.u32();
  entry.kind = distance == 0 ? EntryKind::Cie : EntryKind::Fde;
  entry.cie_offset = distance <= field ? field - distance : ~uint64_t{0};
}

void read_debug_frame_id(ByteReader& reader, bool is_64_bit_format, Entry& entry) {
  const uint64_t id = is_64_bit_format ? reader.u64() : reader.u32();
  const uint64_t cie_id = is_64_bit_format ? ~uint64_t{0} : 0xffff'ffff;
  entry.kind = id == cie_id ? EntryKind::Cie : EntryKind::Fde;
  entry.cie_offset = id;
}

}  // namespace

ByteReader FrameSection::reader(uint64_t begin, uint64_t end) const {
  const auto size = static_cast<size_t>(std::min<uint64_t>(end, bytes.size()));
  ByteReader result(bytes.first(size), order);
  result.seek(begin);
  if (in_file != nullptr && result.ok() && !in_file->bring(begin, size)) result.set_failed();
  return result;
}

uint64_t Entry::head_end() const { return body + std::min(CfiLimits::kHead_bytes, end - body); }

CfiStatus read_entry(const FrameSection& section, uint64_t offset, Entry& entry) {
  const uint64_t size = section.bytes.size();
  if (offset > size) return CfiStatus::Malformed;
  ByteReader reader =
      section.reader(offset, offset + std::min(kMaxLengthAndId_bytes, size - offset));
  uint64_t length = reader.u32();
  const bool is_64_bit_format = length == kLengthOf64BitFormat;
  if (is_64_bit_format) {
    length = reader.u64();
  } else if (length >= kFirstReservedLength) {
    return CfiStatus::Malformed;
  }
  if (!reader.ok() || length > size - reader.position()) return CfiStatus::Malformed;
  entry = {EntryKind::Empty, offset, reader.position(), reader.position() + length, 0};
  const unsigned id_bytes = is_64_bit_format && !section.is_eh_frame ? 8 : 4;
  if (length < id_bytes) return CfiStatus::Ok;
  if (section.is_eh_frame) {
    read_eh_frame_id(reader, entry);
  } else {
    read_debug_frame_id(reader, is_64_bit_format, entry);
  }
  entry.body = reader.position();
  return CfiStatus::Ok;
}

PointerBases pointer_bases(const FrameSection& section, const Cie& cie,
                           std::optional<uint64_t> function) {
  return {cie.address_size_bytes, section.address.value, section.text, std::nullopt, function};
}

namespace {

CfiStatus read_range(ByteReader& reader, const PointerBases& bases, uint8_t encoding, Fde& fde) {
  CfiStatus status = read_pointer(reader, encoding, bases, fde.begin.value);
  if (status != CfiStatus::Ok) return status;
  uint64_t length_bytes = 0;
  status = read_length(reader, encoding, bases, length_bytes);
  // Linkers leave the FDEs of discarded functions in .debug_frame, with the address 0, which is a
  // header's if it is anything, or -1 or -2, from where the range wraps. They cover nothing.
  const uint64_t last = address_mask(bases.address_size_bytes);
  const bool covers_any = fde.begin.value != 0 && length_bytes <= last - fde.begin.value;
  fde.end = {fde.begin.value + (covers_any ? length_bytes : 0)};
  return status;
}

}  // namespace

CfiStatus read_fde(const FrameSection& section, const Entry& entry, const Cie& cie, Fde& fde) {
  ByteReader reader = section.reader(entry.body, entry.head_end());
  fde.offset = entry.offset;
  const PointerBases bases = pointer_bases(section, cie, std::nullopt);
  const CfiStatus status = read_range(reader, bases, cie.fde_encoding, fde);
  if (status != CfiStatus::Ok) return status;
  const uint64_t augmentation_bytes = cie.has_augmentation_length ? reader.uleb128() : 0;
  if (!reader.ok() || augmentation_bytes > entry.end - reader.position()) {
    return CfiStatus::Malformed;
  }
  fde.program = {reader.position() + augmentation_bytes, entry.end};
  return CfiStatus::Ok;
}

CfiStatus FdeScanner::read(const Entry& entry, Fde& fde) {
  const CfiStatus status = last_cie_.read(section_, entry.cie_offset);
  return status == CfiStatus::Ok ? read_fde(section_, entry, last_cie_.cie(), fde) : status;
}

bool FdeScanner::ends(CfiStatus problem) {
  problem_ = problem;
  offset_ = section_.bytes.size();
  return false;
}

bool FdeScanner::next_entry(Entry& entry) {
  if (offset_ >= section_.bytes.size()) return false;
  if (entries_left_ == 0) return ends(CfiStatus::Unsupported);
  --entries_left_;
  const CfiStatus status = read_entry(section_, offset_, entry);
  const bool may_be_end = status != CfiStatus::Ok || entry.kind == EntryKind::Empty;
  if (may_be_end && !section_.end_is_known) return ends(CfiStatus::Ok);
  if (status != CfiStatus::Ok) return ends(status);  // without its length, the next is not found
  offset_ = entry.end;
  return true;
}

bool FdeScanner::next(Fde& fde) {
  for (Entry entry; next_entry(entry);) {
    if (entry.kind == EntryKind::Fde && read(entry, fde) == CfiStatus::Ok) return true;
  }
  return false;
}

}  // namespace sentry_prof::elf
