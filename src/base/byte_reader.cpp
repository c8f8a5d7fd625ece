#include "base/byte_reader.h"

namespace sentry_prof {

uint64_t ByteReader::uleb128() {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = u8();
    if (!ok_) return 0;
    const uint64_t bits = byte & 0x7f;
    // Padding zeros beyond bit 63 are legal, significant bits there are not.
    if (shift >= 64 ? bits != 0 : (bits << shift) >> shift != bits) {
      set_failed();
      return 0;
    }
    if (shift < 64) value |= bits << shift;
    if ((byte & 0x80) == 0) return value;
  }
}

int64_t ByteReader::sleb128() {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = u8();
    if (!ok_ || shift > 70) {
      set_failed();
      return 0;
    }
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      if (shift + 7 < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << (shift + 7);
      return static_cast<int64_t>(value);
    }
  }
}

std::string_view ByteReader::c_string() {
  if (!ok_) return {};
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + position_;
  const void* nul = remaining() == 0 ? nullptr : std::memchr(begin, 0, remaining());
  if (nul == nullptr) {
    set_failed();
    return {};
  }
  const std::string_view text(begin, static_cast<const char*>(nul) - begin);
  position_ += text.size() + 1;
  return text;
}

}  // namespace sentry_prof
