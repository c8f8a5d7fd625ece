// Values as bytes and back, little-endian, their fields listed once for both: describe(io, value)
// calls `io` with each field, in order. FieldReader is safe on any bytes.
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "sentry_prof/result.h"

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sentry_prof {

template <typename T>
concept FieldNumber = std::integral<T> || std::is_enum_v<T>;

class FieldWriter {
 public:
  static constexpr bool kReads = false;

  template <FieldNumber T>
  void operator()(const T& value) {
    auto rest = static_cast<uint64_t>(value);
    for (size_t i = 0; i < sizeof(T); ++i, rest >>= 8) bytes_ += static_cast<char>(rest & 0xff);
  }
  void operator()(const std::string& text) {
    count(text.size());
    bytes_ += text;
  }
  void operator()(const std::vector<std::byte>& bytes) {
    count(bytes.size());
    rest(bytes);
  }
  void rest(Bytes bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void count(size_t value) { (*this)(static_cast<uint32_t>(value)); }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class FieldReader {
 public:
  static constexpr bool kReads = true;
  explicit FieldReader(Bytes bytes) : in_(bytes) {}

  template <FieldNumber T>
  void operator()(T& value) {
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof(T); ++i) number |= uint64_t{in_.u8()} << (8 * i);
    if constexpr (std::is_same_v<T, bool>) {
      if (number > 1) in_.set_failed();
      value = number == 1;
    } else {
      value = static_cast<T>(number);
    }
  }
  void operator()(std::string& text) {
    const Bytes bytes = counted();
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void operator()(std::vector<std::byte>& out) {
    const Bytes bytes = counted();
    out.assign(bytes.begin(), bytes.end());
  }
  Bytes rest() { return in_.bytes(in_.remaining()); }
  // A number of items of at least `item_bytes` each that still have room.
  uint32_t count(size_t item_bytes) {
    const uint32_t value = in_.u32();
    if (value <= in_.remaining() / item_bytes) return value;
    in_.set_failed();
    return 0;
  }
  void fail_unless(bool holds) {
    if (!holds) in_.set_failed();
  }
  bool ok() const { return in_.ok(); }
  bool is_done() const { return in_.ok() && in_.at_end(); }

 private:
  Bytes counted() { return in_.bytes(in_.u32()); }
  ByteReader in_;
};

template <typename Fields>
void describe(Fields& f, RuntimeAddress& address) {
  f(address.value);
}

template <typename Fields>
void describe(Fields& f, Error& error) {
  f(error.code), f(error.message);
}

}  // namespace sentry_prof
