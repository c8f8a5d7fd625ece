#include "base/byte_reader.h"

#include "support/catch2.h"

#include <array>
#include <span>

using sentry_prof::ByteReader;

namespace {

template <typename... T>
auto bytes(T... values) {
  return std::array<std::byte, sizeof...(T)>{static_cast<std::byte>(values)...};
}

}  // namespace

TEST_CASE("ByteReader reads both byte orders") {
  const auto data = bytes(1, 2, 3, 4);
  CHECK(ByteReader(data).u32() == 0x04030201);
  CHECK(ByteReader(data, std::endian::big).u32() == 0x01020304);
}

TEST_CASE("ByteReader fails for good on a read past the end") {
  const auto data = bytes(1, 2, 3);
  ByteReader reader(data);
  CHECK(reader.u32() == 0);
  CHECK_FALSE(reader.ok());
  CHECK(reader.u8() == 0);
  CHECK(reader.position() == 0);
}

TEST_CASE("ByteReader reads LEB128 as DWARF 5 tables 7.8 and 7.9 show it") {
  CHECK(ByteReader(bytes(0x02)).uleb128() == 2);
  CHECK(ByteReader(bytes(0x80, 0x01)).uleb128() == 128);
  CHECK(ByteReader(bytes(0xb9, 0x64)).uleb128() == 12857);
  CHECK(ByteReader(bytes(0x7e)).sleb128() == -2);
  CHECK(ByteReader(bytes(0xff, 0x00)).sleb128() == 127);
  CHECK(ByteReader(bytes(0x81, 0x7f)).sleb128() == -127);
  CHECK(ByteReader(bytes(0x80, 0x7f)).sleb128() == -128);
  CHECK(ByteReader(bytes(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f)).sleb128() ==
        INT64_MIN);
}

TEST_CASE("ByteReader refuses a LEB128 that does not fit into 64 bits, or is padded too far") {
  const auto too_large = bytes(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02);
  const auto padded = bytes(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
  CHECK(ByteReader(padded).uleb128() == 1);
  CHECK(ByteReader(padded).sleb128() == 1);
  const auto padded_farther =
      bytes(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
  for (const std::span<const std::byte> data :
       {std::span<const std::byte>(too_large), std::span<const std::byte>(padded_farther)}) {
    ByteReader as_unsigned(data), as_signed(data);
    as_unsigned.uleb128();
    CHECK_FALSE(as_unsigned.ok());
    as_signed.sleb128();
    CHECK_FALSE(as_signed.ok());
  }
}
