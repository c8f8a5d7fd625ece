// Parsing of CIEs.
#include "elf/cfi_entry.h"

#include <array>
#include <string_view>

namespace sentry_prof::elf {

namespace {

constexpr size_t kMaxAugmentationLetters = 7;  // there are seven, each at most once

struct Augmentation {
  std::array<char, kMaxAugmentationLetters> letters{};
  size_t size = 0;
  std::string_view text() const { return {letters.data(), size}; }
};

CfiStatus read_augmentation(ByteReader& reader, Augmentation& augmentation) {
  constexpr std::string_view kKnown = "zRLPSBG";
  for (;;) {
    const char letter = static_cast<char>(reader.u8());
    if (!reader.ok()) return CfiStatus::Malformed;
    if (letter == '\0') return CfiStatus::Ok;
    const bool is_known = kKnown.find(letter) != std::string_view::npos;
    if (!is_known) return CfiStatus::Unsupported;
    if (augmentation.text().find(letter) != std::string_view::npos) return CfiStatus::Malformed;
    augmentation.letters[augmentation.size++] = letter;
  }
}

// The operand of one letter behind 'z'. 'B' and 'G' (aarch64: return addresses signed with the B
// key, tagged stack) have none and do not matter for finding the caller.
CfiStatus read_operand(ByteReader& reader, char letter, const PointerBases& bases, Cie& cie) {
  switch (letter) {
    case 'R':
      cie.fde_encoding = reader.u8();
      break;
    case 'L':
      reader.u8();
      break;
    case 'P':
      return skip_pointer(reader, reader.u8(), bases);
    case 'S':
      cie.is_signal_frame = true;
      break;
    default:
      break;
  }
  return reader.ok() ? CfiStatus::Ok : CfiStatus::Malformed;
}

// Without 'z' nothing says how long the operands are, so only letters without one are taken;
// assemblers write "S" alone into .debug_frame.
CfiStatus read_operands(ByteReader& reader, const FrameSection& section, std::string_view letters,
                        Cie& cie) {
  cie.has_augmentation_length = letters.starts_with('z');
  if (!cie.has_augmentation_length && letters.find_first_of("zRLP") != std::string_view::npos) {
    return CfiStatus::Unsupported;
  }
  const uint64_t size = cie.has_augmentation_length ? reader.uleb128() : 0;
  if (!reader.ok() || size > reader.remaining()) return CfiStatus::Malformed;
  const uint64_t end = reader.position() + size;
  for (const char letter : letters) {
    const PointerBases bases = pointer_bases(section, cie, std::nullopt);
    const CfiStatus status = read_operand(reader, letter, bases, cie);
    if (status != CfiStatus::Ok) return status;
  }
  if (reader.position() > end) return CfiStatus::Malformed;
  reader.seek(end);
  return CfiStatus::Ok;
}

// DWARF 4 and 5 state the sizes of addresses and segment selectors.
CfiStatus read_address_size(ByteReader& reader, Cie& cie) {
  cie.address_size_bytes = reader.u8();
  const uint8_t segment_selector_bytes = reader.u8();
  if (!reader.ok()) return CfiStatus::Malformed;
  const bool is_known = cie.address_size_bytes == 4 || cie.address_size_bytes == 8;
  return is_known && segment_selector_bytes == 0 ? CfiStatus::Ok : CfiStatus::Unsupported;
}

CfiStatus read_alignments(ByteReader& reader, uint8_t version, Cie& cie) {
  cie.code_alignment = reader.uleb128();
  cie.data_alignment = reader.sleb128();
  const uint64_t column = version == 1 ? reader.u8() : reader.uleb128();
  if (!reader.ok()) return CfiStatus::Malformed;
  if (column > CfiLimits::kRegister) return CfiStatus::Unsupported;
  cie.return_address_register = static_cast<uint8_t>(column);
  return CfiStatus::Ok;
}

CfiStatus read_head(ByteReader& reader, const FrameSection& section, Cie& cie) {
  const uint8_t version = reader.u8();
  if (!reader.ok()) return CfiStatus::Malformed;
  if (version != 1 && version != 3 && version != 4) return CfiStatus::Unsupported;
  Augmentation augmentation;
  CfiStatus status = read_augmentation(reader, augmentation);
  if (status == CfiStatus::Ok && version == 4) status = read_address_size(reader, cie);
  if (status == CfiStatus::Ok) status = read_alignments(reader, version, cie);
  if (status == CfiStatus::Ok) status = read_operands(reader, section, augmentation.text(), cie);
  return status;
}

}  // namespace

CfiStatus read_cie(const FrameSection& section, uint64_t offset, Cie& cie) {
  Entry entry;
  const CfiStatus status = read_entry(section, offset, entry);
  if (status != CfiStatus::Ok) return status;
  if (entry.kind != EntryKind::Cie) return CfiStatus::Malformed;
  cie = {};
  cie.address_size_bytes = section.address_size_bytes;
  ByteReader reader = section.reader(entry.body, entry.head_end());
  const CfiStatus head_status = read_head(reader, section, cie);
  cie.program = {reader.position(), entry.end};
  return head_status;
}

CfiStatus LastCie::read(const FrameSection& section, uint64_t offset) {
  if (offset_ != offset) {
    status_ = read_cie(section, offset, cie_);
    offset_ = offset;
  }
  return status_;
}

}  // namespace sentry_prof::elf
