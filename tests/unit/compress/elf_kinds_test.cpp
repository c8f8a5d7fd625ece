// The kinds of compression that ELF files have inside: zlib, zstd and xz, all of it at once.
#include "compress/expander.h"
#include "support/catch2.h"
#include "support/packed.h"

#include <string>

namespace sentry_prof::compress {

namespace {

using test::PackedBytes;

PackedBytes some_bytes(size_t size) {
  PackedBytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7919 % 251);
  return bytes;
}

struct Kind {
  Compression compression;
  std::string name;
  PackedBytes (*pack)(std::span<const std::byte>);
};

const Kind kKinds[] = {
    {Compression::Zlib, "zlib", test::zlib_packed},
    {Compression::Zstd, "zstd", test::zstd_packed},
    {Compression::Xz, "xz",
     [](std::span<const std::byte> bytes) { return test::xz_packed(bytes); }},
};

}  // namespace

TEST_CASE("What ELF files have inside comes back whole, up to the limit") {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    for (const size_t size : {size_t{0}, size_t{1}, size_t{131072}, size_t{300000}}) {
      const PackedBytes bytes = some_bytes(size);
      const auto whole = expand_whole(kind.compression, kind.pack(bytes), size);
      REQUIRE(whole);
      CHECK(*whole == bytes);
    }
    const auto beyond = expand_whole(kind.compression, kind.pack(some_bytes(1000)), 999);
    REQUIRE_FALSE(beyond);
    CHECK(beyond.error().code == ErrorCode::LimitExceeded);
  }
}

TEST_CASE("Damage, bytes behind the end and a missing end are told") {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    const PackedBytes good = kind.pack(some_bytes(1000));
    const auto error_of = [&](const PackedBytes& bytes) {
      const auto whole = expand_whole(kind.compression, bytes, 1 << 20);
      return whole ? std::string("none") : whole.error().message;
    };
    PackedBytes longer = good;
    longer.resize(good.size() + 5, std::byte{0x55});
    // Of xz they are taken for the beginning of a further stream.
    const bool is_xz = kind.compression == Compression::Xz;
    const std::string told = is_xz ? "cut off" : "behind the end of the " + kind.name;
    CHECK(error_of(longer).find(told) != std::string::npos);
    CHECK(error_of({good.begin(), good.end() - 1}).find("cut off") != std::string::npos);
    PackedBytes damaged = good;
    damaged[0] ^= std::byte{0xff};
    CHECK_FALSE(expand_whole(kind.compression, damaged, 1 << 20));
  }
}

TEST_CASE("xz data that asks for more memory than it is given is refused") {
  const auto whole = expand_whole(Compression::Xz, test::xz_packed(some_bytes(100), 9), 100);
  REQUIRE_FALSE(whole);
  CHECK(whole.error().code == ErrorCode::Unsupported);
}

TEST_CASE("Several xz streams are one text, with padding between and behind them") {
  const PackedBytes first = some_bytes(200'000), second = some_bytes(1000);
  PackedBytes both = first;
  both.insert(both.end(), second.begin(), second.end());
  for (const size_t padding_bytes : {size_t{0}, size_t{8}}) {
    PackedBytes packed;
    for (const PackedBytes& bytes : {first, second}) {
      const PackedBytes stream = test::xz_packed(bytes);
      packed.insert(packed.end(), stream.begin(), stream.end());
      packed.resize(packed.size() + padding_bytes);
    }
    const auto whole = expand_whole(Compression::Xz, packed, both.size());
    REQUIRE(whole);
    CHECK(*whole == both);
    CHECK(expand_whole(Compression::Xz, packed, both.size() - 1).error().code ==
          ErrorCode::LimitExceeded);
    const auto expander = make_expander(Compression::Xz);
    size_t size = 0;
    for (const std::byte byte : packed) {
      const char piece = static_cast<char>(byte);
      REQUIRE(expander->feed({&piece, 1}, [&](std::string_view text) {
        size += text.size();
        return true;
      }));
    }
    CHECK(expander->finish());
    CHECK(size == both.size());
  }
}

TEST_CASE("A second xz stream that is cut off, or asks for too much memory, is refused") {
  PackedBytes packed = test::xz_packed(some_bytes(1000));
  const PackedBytes greedy = test::xz_packed(some_bytes(1000), 9);
  PackedBytes cut = packed;
  cut.insert(cut.end(), packed.begin(), packed.end() - 1);
  CHECK(expand_whole(Compression::Xz, cut, 1 << 20).error().code == ErrorCode::Malformed);
  packed.insert(packed.end(), greedy.begin(), greedy.end());
  CHECK(expand_whole(Compression::Xz, packed, 1 << 20).error().code == ErrorCode::Unsupported);
}

}  // namespace sentry_prof::compress
