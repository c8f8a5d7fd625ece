#include "elf/cfi_pointer.h"

#include "cfi_builder.h"
#include "support/catch2.h"

#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::elf;
using test::ByteWriter;

namespace {

struct Pointer {
  CfiStatus status = CfiStatus::Ok;
  uint64_t address = 0;
  size_t end = 0;  // where the reader stands
};

// Reads a pointer at `position` of a section at 0x1000.
Pointer read(uint8_t encoding, const std::vector<std::byte>& bytes, size_t position = 0,
             PointerBases bases = {}) {
  bases.section_address = 0x1000;
  ByteReader reader(bytes);
  reader.seek(position);
  Pointer result;
  result.status = read_pointer(reader, encoding, bases, result.address);
  result.end = reader.position();
  return result;
}

ByteWriter bytes() { return ByteWriter(); }

void check_address(const Pointer& pointer, uint64_t address, size_t end) {
  CHECK(pointer.status == CfiStatus::Ok);
  CHECK(pointer.address == address);
  CHECK(pointer.end == end);
}

}  // namespace

TEST_CASE("pointers are read in each format") {
  check_address(read(0x00, bytes().u64(0x1122334455667788).bytes()), 0x1122334455667788, 8);
  check_address(read(0x00, bytes().u32(0xfffffff0).bytes(), 0, {4, 0, {}, {}, {}}), 0xfffffff0, 4);
  check_address(read(0x01, bytes().u8(0x80).u8(0x01).bytes()), 128, 2);
  check_address(read(0x02, bytes().u16(0xfffe).bytes()), 0xfffe, 2);
  check_address(read(0x03, bytes().u32(0xfffffffe).bytes()), 0xfffffffe, 4);
  check_address(read(0x04, bytes().u64(5).bytes()), 5, 8);
  check_address(read(0x09, bytes().u8(0x7e).bytes()), ~uint64_t{1}, 1);
  check_address(read(0x0a, bytes().u16(0xfffe).bytes()), ~uint64_t{1}, 2);
  check_address(read(0x0b, bytes().u32(0xfffffffe).bytes()), ~uint64_t{1}, 4);
  check_address(read(0x0c, bytes().u64(~uint64_t{1}).bytes()), ~uint64_t{1}, 8);
}

TEST_CASE("pointers are relative to their own address, text, data or function") {
  const std::vector<std::byte> minus_two = bytes().u32(0).u32(0xfffffffe).bytes();
  const PointerBases bases{8, 0, 0x10000, 0x20000, 0x30000};
  check_address(read(0x1b, minus_two, 4, bases), 0x1002, 8);
  check_address(read(0x2b, minus_two, 4, bases), 0xfffe, 8);
  check_address(read(0x3b, minus_two, 4, bases), 0x1fffe, 8);
  check_address(read(0x4b, minus_two, 4, bases), 0x2fffe, 8);
}

TEST_CASE("sums of 32-bit addresses wrap at 32 bits") {
  const PointerBases bases{4, 0, 0x10, {}, {}};
  check_address(read(0x2b, bytes().u32(0xffffffe0).bytes(), 0, bases), 0xfffffff0, 4);
  check_address(read(0x23, bytes().u32(0xfffffff8).bytes(), 0, bases), 0x8, 4);
}

TEST_CASE("aligned pointers stand at the next multiple of their size") {
  const std::vector<std::byte> data = bytes().u64(1).u64(0x77).bytes();
  check_address(read(0x50, data, 3), 0x77, 16);
  check_address(read(0x50, data, 8), 0x77, 16);
  CHECK(read(0x53, data, 8).status == CfiStatus::Unsupported);
  CHECK(read(0x50, data, 9).status == CfiStatus::Malformed);
}

TEST_CASE("pointers relative to something unknown, indirect, omitted or of no format are refused") {
  const std::vector<std::byte> data = bytes().u64(0).bytes();
  for (const int encoding : {0x20, 0x30, 0x40, 0x60, 0x70, 0x80, 0x9b, 0xff, 0x05, 0x08, 0x0f}) {
    CAPTURE(encoding);
    CHECK(read(static_cast<uint8_t>(encoding), data).status == CfiStatus::Unsupported);
  }
}

TEST_CASE("pointers that are cut off are malformed") {
  const std::vector<std::byte> data = bytes().u8(0x80).bytes();
  for (const int encoding : {0x00, 0x01, 0x02, 0x03, 0x04, 0x09, 0x0a, 0x1b, 0x0c}) {
    CAPTURE(encoding);
    CHECK(read(static_cast<uint8_t>(encoding), data).status == CfiStatus::Malformed);
  }
}

TEST_CASE("a personality pointer is stepped over also where it is indirect or omitted") {
  const std::vector<std::byte> data = bytes().u64(1).u64(2).bytes();
  struct Case {
    uint8_t encoding;
    size_t begin, end;
  };
  for (const Case& c :
       {Case{0x9b, 1, 5}, {0x80, 0, 8}, {0xff, 3, 3}, {0x50, 3, 16}, {0x01, 2, 3}}) {
    ByteReader reader(data);
    reader.seek(c.begin);
    CHECK(skip_pointer(reader, c.encoding, {8, 0x1000, {}, {}, {}}) == CfiStatus::Ok);
    CHECK(reader.position() == c.end);
  }
  ByteReader reader(data);
  CHECK(skip_pointer(reader, 0x0f, {}) == CfiStatus::Unsupported);
}

TEST_CASE("lengths have the pointer's format without its base and sign") {
  const std::vector<std::byte> data = bytes().u32(0xfffffff0).bytes();
  for (const int encoding : {0x03, 0x0b, 0x1b, 0x3b}) {
    ByteReader reader(data);
    uint64_t length = 0;
    CHECK(read_length(reader, static_cast<uint8_t>(encoding), {}, length) == CfiStatus::Ok);
    CHECK(length == 0xfffffff0);
  }
}
