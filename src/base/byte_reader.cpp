#include "base/byte_reader.h"

namespace sentry_prof {
namespace {

// Of the last byte that has bits of 64, or pads them (to ten bytes, as assemblers do that leave
// room for any value).
constexpr unsigned kLastShift = 63;

}  // namespace

uint64_t ByteReader::long_uleb128() {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = u8();
    if (!ok_ || shift > kLastShift) {
      set_failed();
      return 0;
    }
    const uint64_t bits = byte & 0x7f;
    if ((bits << shift) >> shift != bits) {
      set_failed();
      return 0;
    }
    value |= bits << shift;
    if ((byte & 0x80) == 0) return value;
  }
}

int64_t ByteReader::sleb128() {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = u8();
    const uint64_t bits = byte & 0x7f;
    // Of the last byte all bits are the sign.
    const bool fits = shift < kLastShift || bits == 0 || bits == 0x7f;
    if (!ok_ || shift > kLastShift || !fits) {
      set_failed();
      return 0;
    }
    value |= bits << shift;
    if ((byte & 0x80) == 0) {
      if (shift < kLastShift && (byte & 0x40) != 0) value |= ~uint64_t{0} << (shift + 7);
      return static_cast<int64_t>(value);
    }
  }
}

}  // namespace sentry_prof
