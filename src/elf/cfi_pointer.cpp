#include "elf/cfi_pointer.h"

namespace sentry_prof::elf {

namespace {

using namespace pointer_encoding;

// The bare value, sign-extended to 64 bits where the format is signed. False: no such format.
bool read_value(ByteReader& reader, uint8_t format, uint8_t address_size_bytes, uint64_t& value) {
  switch (format) {
    case kAbsolute:
      value = address_size_bytes == 4 ? reader.u32() : reader.u64();
      return true;
    case kUleb128:
      value = reader.uleb128();
      return true;
    case kUdata2:
      value = reader.u16();
      return true;
    case kUdata4:
      value = reader.u32();
      return true;
    case kUdata8:
      value = reader.u64();
      return true;
    case kSleb128:
      value = static_cast<uint64_t>(reader.sleb128());
      return true;
    case kSdata2:
      value = static_cast<uint64_t>(int64_t{reader.i16()});
      return true;
    case kSdata4:
      value = static_cast<uint64_t>(int64_t{reader.i32()});
      return true;
    case kSdata8:
      value = reader.u64();
      return true;
    default:
      return false;
  }
}

std::optional<uint64_t> base_of(uint8_t application, const PointerBases& bases, uint64_t position) {
  switch (application) {
    case kAbsolute:
      return 0;
    case kPcRelative:
      return bases.section_address + position;
    case kTextRelative:
      return bases.text;
    case kDataRelative:
      return bases.data;
    case kFunctionRelative:
      return bases.function;
    default:
      return std::nullopt;
  }
}

// DW_EH_PE_aligned: an absolute pointer at the next address that is a multiple of its size.
void skip_to_alignment(ByteReader& reader, const PointerBases& bases) {
  const uint64_t address = bases.section_address + reader.position();
  reader.skip((0 - address) & (bases.address_size_bytes - 1u));
}

CfiStatus status_of(const ByteReader& reader) {
  return reader.ok() ? CfiStatus::Ok : CfiStatus::Malformed;
}

}  // namespace

CfiStatus read_pointer(ByteReader& reader, uint8_t encoding, const PointerBases& bases,
                       uint64_t& address) {
  if ((encoding & kIndirect) != 0) return CfiStatus::Unsupported;  // also kOmit
  uint8_t application = encoding & kApplicationMask;
  if (application == kAligned) {
    if (encoding != kAligned) return CfiStatus::Unsupported;
    skip_to_alignment(reader, bases);
    application = kAbsolute;
  }
  const std::optional<uint64_t> base = base_of(application, bases, reader.position());
  uint64_t value = 0;
  if (!base || !read_value(reader, encoding & kFormatMask, bases.address_size_bytes, value)) {
    return CfiStatus::Unsupported;
  }
  address = (*base + value) & address_mask(bases.address_size_bytes);
  return status_of(reader);
}

CfiStatus skip_pointer(ByteReader& reader, uint8_t encoding, const PointerBases& bases) {
  if (encoding == kOmit) return CfiStatus::Ok;
  if ((encoding & kApplicationMask) == kAligned) skip_to_alignment(reader, bases);
  uint64_t ignored = 0;
  if (!read_value(reader, encoding & kFormatMask, bases.address_size_bytes, ignored)) {
    return CfiStatus::Unsupported;
  }
  return status_of(reader);
}

CfiStatus read_length(ByteReader& reader, uint8_t encoding, const PointerBases& bases,
                      uint64_t& length_bytes) {
  // A signed format has its unsigned twin eight below; functions beyond half the range stay whole.
  const auto format = static_cast<uint8_t>(encoding & kFormatMask & ~0x08);
  if (!read_value(reader, format, bases.address_size_bytes, length_bytes)) {
    return CfiStatus::Unsupported;
  }
  return status_of(reader);
}

}  // namespace sentry_prof::elf
