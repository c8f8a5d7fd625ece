#include "symbols/string_table.h"

#include "support/catch2.h"
#include "support/piecewise_source.h"

#include <string>

using namespace sentry_prof;
using symbols::StringTable;

namespace {

constexpr uint64_t kBegin = 100;  // of the table in its file

// Strings of twelve bytes and a NUL each.
struct Fixture {
  explicit Fixture(size_t count) : file(bytes_of(count)) {}

  static std::string string(size_t number) {
    const std::string digits = std::to_string(number);
    return std::string(12 - digits.size(), 's') + digits;
  }
  static std::vector<std::byte> bytes_of(size_t count) {
    std::string text(kBegin, '-');
    for (size_t i = 0; i < count; ++i) text += string(i) + '\0';
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  static uint32_t offset(size_t number) { return static_cast<uint32_t>(13 * number); }

  test::PiecewiseSource file;
  elf::Section section{{}, kBegin, file.bytes.size() - kBegin, 0};
  StringTable table{file, section};
};

}  // namespace

TEST_CASE("StringTable reads strings that are asked for in order once, in windows") {
  Fixture f(10'000);
  for (size_t i = 0; i < 10'000; ++i) REQUIRE(f.table.at(Fixture::offset(i)) == Fixture::string(i));
  CHECK(f.file.reads <= f.section.size_bytes / (16 << 10) + 1);
  CHECK(f.file.read_bytes < f.section.size_bytes + f.file.reads * 13);
}

TEST_CASE("StringTable finds strings in any order, and ends of strings") {
  Fixture f(10'000);
  for (const size_t i : {9'999, 0, 5'000, 4'999, 1}) {
    CHECK(f.table.at(Fixture::offset(i)) == Fixture::string(i));
  }
  CHECK(f.table.at(Fixture::offset(3) + 10) == Fixture::string(3).substr(10));
}

TEST_CASE("StringTable has no string that is empty, outside or not terminated") {
  Fixture f(3);
  CHECK_FALSE(f.table.at(12));
  CHECK_FALSE(f.table.at(Fixture::offset(3)));
  CHECK_FALSE(f.table.at(UINT32_MAX));

  Fixture cut_off(3);
  cut_off.section.size_bytes -= 1;
  CHECK(cut_off.table.at(Fixture::offset(1)) == Fixture::string(1));
  CHECK_FALSE(cut_off.table.at(Fixture::offset(2)));
}

TEST_CASE("StringTable cuts a string without end at its limit") {
  Fixture f(1);
  f.file.bytes.assign(kBegin + 50'000, std::byte{'x'});
  f.file.readable_bytes = f.file.bytes.size();
  f.section.size_bytes = 50'000;
  CHECK(f.table.at(7) == std::string(StringTable::kMaxString_bytes, 'x'));
  CHECK_FALSE(f.table.at(50'000 - StringTable::kMaxString_bytes + 1));
}

TEST_CASE("StringTable has no string where the file cannot be read, and others behind that") {
  Fixture f(10'000);
  CHECK(f.table.at(0) == Fixture::string(0));
  f.file.readable_bytes = kBegin;
  CHECK(f.table.at(Fixture::offset(1)) == Fixture::string(1));  // was read with the first
  CHECK_FALSE(f.table.at(Fixture::offset(9'000)));
  CHECK_FALSE(f.table.at(Fixture::offset(9'001)));
  f.file.readable_bytes = f.file.bytes.size();
  CHECK(f.table.at(Fixture::offset(9'002)) == Fixture::string(9'002));
}
