// Pointers in .eh_frame and .eh_frame_hdr: the DW_EH_PE_* encodings.
// Source: LSB 5.0 Core, section 10.5 "DWARF Exception Header Encoding".
#pragma once

#include "base/byte_reader.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::elf {

// How far one piece of call frame information could be understood.
enum class CfiStatus : uint8_t {
  Ok,
  Malformed,    // breaks its rules
  Unsupported,  // may be valid, but is beyond our limits or of an unknown kind
};

// Low four bits: the format. High bits: what the value is relative to.
namespace pointer_encoding {
inline constexpr uint8_t kAbsolute = 0x00, kUleb128 = 0x01, kUdata2 = 0x02, kUdata4 = 0x03,
                         kUdata8 = 0x04, kSleb128 = 0x09, kSdata2 = 0x0a, kSdata4 = 0x0b,
                         kSdata8 = 0x0c;
inline constexpr uint8_t kPcRelative = 0x10, kTextRelative = 0x20, kDataRelative = 0x30,
                         kFunctionRelative = 0x40, kAligned = 0x50;
inline constexpr uint8_t kIndirect = 0x80, kOmit = 0xff;
inline constexpr uint8_t kFormatMask = 0x0f, kApplicationMask = 0x70;
}  // namespace pointer_encoding

// What pointers can be relative to. A pointer that needs an absent base is Unsupported.
struct PointerBases {
  uint8_t address_size_bytes = 8;  // 4 or 8
  uint64_t section_address = 0;    // link address of the reader's position 0
  std::optional<uint64_t> text, data, function;
};

// All ones of an address: sums of addresses wrap there.
constexpr uint64_t address_mask(uint8_t address_size_bytes) {
  return address_size_bytes == 4 ? 0xffff'ffff : ~uint64_t{0};
}

// Reads one pointer at the reader's position, which counts from the start of the section. Indirect
// pointers are Unsupported: what they point to is memory of a process, not in this section.
CfiStatus read_pointer(ByteReader& reader, uint8_t encoding, const PointerBases& bases,
                       uint64_t& address);

// Steps over a pointer whose value is of no interest (personality routine); it may be indirect.
CfiStatus skip_pointer(ByteReader& reader, uint8_t encoding, const PointerBases& bases);

// Reads the length that follows an FDE's first address: the same format, never relative or
// negative.
CfiStatus read_length(ByteReader& reader, uint8_t encoding, const PointerBases& bases,
                      uint64_t& length_bytes);

}  // namespace sentry_prof::elf
