#include "base/byte_reader.h"

#include "support/catch2.h"

#include <array>

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
}

TEST_CASE("ByteReader refuses an ULEB128 that does not fit into 64 bits") {
  const auto data = bytes(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02);
  ByteReader reader(data);
  reader.uleb128();
  CHECK_FALSE(reader.ok());
}

TEST_CASE("ByteReader takes a C string only if its NUL is there") {
  const auto whole = bytes('a', 'b', 0, 'c');
  ByteReader reader(whole);
  CHECK(reader.c_string() == "ab");
  CHECK(reader.position() == 3);
  CHECK(reader.c_string().empty());
  CHECK_FALSE(reader.ok());
}
