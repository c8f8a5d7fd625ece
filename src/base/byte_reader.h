// The one way in which hostile bytes are read: bounds are checked, failure sticks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace sentry_prof {

using Bytes = std::span<const std::byte>;

// A cursor over bytes that the caller owns and keeps alive. A read past the end returns zero (or an
// empty span), moves nothing, and makes ok() false for good: check once after a group of reads.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes, std::endian order = std::endian::little)
      : bytes_(bytes), order_(order) {}

  bool ok() const { return ok_; }
  bool at_end() const { return position_ == bytes_.size(); }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }
  std::endian order() const { return order_; }
  void set_failed() { ok_ = false; }

  void seek(uint64_t position) {
    if (position > bytes_.size()) return set_failed();
    position_ = static_cast<size_t>(position);
  }
  void skip(uint64_t count) {
    if (!ok_ || count > remaining()) return set_failed();
    position_ += static_cast<size_t>(count);
  }

  uint8_t u8() { return fixed<uint8_t>(); }
  uint16_t u16() { return fixed<uint16_t>(); }
  uint32_t u32() { return fixed<uint32_t>(); }
  uint64_t u64() { return fixed<uint64_t>(); }
  int8_t i8() { return static_cast<int8_t>(u8()); }
  int16_t i16() { return static_cast<int16_t>(u16()); }
  int32_t i32() { return static_cast<int32_t>(u32()); }
  int64_t i64() { return static_cast<int64_t>(u64()); }

  // DWARF 5, section 7.6. Fails on values that do not fit into 64 bits, and behind ten bytes. Most
  // numbers of unwind tables are a single byte.
  uint64_t uleb128() {
    const bool is_single_byte =
        ok_ && !at_end() && (bytes_[position_] & std::byte{0x80}) == std::byte{0};
    return is_single_byte ? u8() : long_uleb128();
  }
  int64_t sleb128();

  // The next `count` bytes, still owned by the caller of the constructor.
  Bytes bytes(uint64_t count) {
    if (!ok_ || count > remaining()) {
      set_failed();
      return {};
    }
    Bytes result = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return result;
  }

 private:
  uint64_t long_uleb128();

  template <typename T>
  T fixed() {
    if (!ok_ || sizeof(T) > remaining()) {
      set_failed();
      return 0;
    }
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return order_ == std::endian::native ? value : byte_swapped(value);
  }

  template <typename T>
  static T byte_swapped(T value) {
    if constexpr (sizeof(T) == 1) return value;
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  }

  Bytes bytes_;
  std::endian order_;
  size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace sentry_prof
