#include "sampling/ring_reader.h"

#include "ring_fixture.h"
#include "support/catch2.h"

#include <algorithm>
#include <memory>

using namespace sentry_prof;
using namespace sentry_prof::sampling;
using namespace sentry_prof::test;

namespace {

std::vector<uint64_t> times_of(RingReader& reader) {
  std::vector<uint64_t> times;
  while (reader.front()) {
    times.push_back(reader.front_time_ns());
    reader.pop();
  }
  return times;
}

std::unique_ptr<RecordScratch> scratch() { return std::make_unique<RecordScratch>(); }

}  // namespace

TEST_CASE("an empty ring has no records") {
  RingReader reader = reader_of(RingBuilder(kRing_bytes));
  CHECK_FALSE(reader.front());
  CHECK(reader.take_malformed() == 0);
}

TEST_CASE("records come in the order in which they were written") {
  RingBuilder ring(kRing_bytes);
  ring.append(comm(5, "a")).append(comm(7, "bb")).append(comm(6, "ccc"));
  RingReader reader = reader_of(ring);
  CHECK(times_of(reader) == std::vector<uint64_t>{5, 7, 6});
  CHECK(reader.tail() == ring.head());
}

TEST_CASE("a record that does not straddle the end is read in place") {
  RingBuilder ring(kRing_bytes);
  ring.append(comm(5, "a"));
  RingReader reader = reader_of(ring);
  auto memory = scratch();
  REQUIRE(reader.front());
  CHECK(reader.front_bytes(*memory).data() == ring.bytes().data());
}

TEST_CASE("a record is whole wherever it straddles the end") {
  const auto record = comm(5, "a name of some length");
  for (uint64_t before_end = 8; before_end <= record.size(); before_end += 8) {
    RingBuilder ring(kRing_bytes, 3 * kRing_bytes - before_end);
    ring.append(record).append(comm(6, "next"));
    RingReader reader = reader_of(ring);
    auto memory = scratch();
    CAPTURE(before_end);
    REQUIRE(reader.front());
    CHECK(reader.front_time_ns() == 5);
    const Bytes bytes = reader.front_bytes(*memory);
    CHECK(std::ranges::equal(bytes, record));
    reader.pop();
    CHECK(times_of(reader) == std::vector<uint64_t>{6});
  }
}

TEST_CASE("a ring that is full to the last byte is read whole") {
  RingBuilder ring(kRing_bytes, 72);
  const auto record = comm(5, "123456789012345");  // 64 bytes
  REQUIRE(record.size() == 64);
  for (size_t i = 0; i < kRing_bytes / record.size(); ++i) ring.append(record);
  RingReader reader = reader_of(ring);
  CHECK(times_of(reader).size() == kRing_bytes / 64);
  CHECK(reader.take_malformed() == 0);
}

TEST_CASE("a header that cannot be ends the range and is told once") {
  const RecordBuilder record = RecordBuilder(PERF_RECORD_COMM).u64(1).u64(2).u64(3);
  constexpr uint16_t kImpossible[] = {0, 1, 7, 12, 33, 4000, 65535};
  for (uint16_t size : kImpossible) {
    RingBuilder ring(kRing_bytes);
    ring.append(comm(5, "good"))
        .append(record.build_with_size(size))
        .append(comm(6, "unreachable"));
    RingReader reader = reader_of(ring);
    CAPTURE(size);
    CHECK(times_of(reader) == std::vector<uint64_t>{5});
    CHECK(reader.tail() == ring.head());
    CHECK(reader.take_malformed() == 1);
    CHECK(reader.take_malformed() == 0);
  }
}

TEST_CASE("a range that is too small for a header, or larger than the ring, is skipped") {
  RingBuilder ring(kRing_bytes);
  ring.append(comm(5, "a"));
  RingReader reader(ring.bytes(), layout());
  reader.set_range(0, 4);
  CHECK_FALSE(reader.front());
  CHECK(reader.take_malformed() == 1);
  reader.set_range(0, kRing_bytes + 8);
  CHECK_FALSE(reader.front());
  CHECK(reader.take_malformed() == 1);
  reader.set_range(3, 67);
  CHECK_FALSE(reader.front());
  CHECK(reader.take_malformed() == 1);
  reader.set_range(64, 0);
  CHECK_FALSE(reader.front());
  CHECK(reader.take_malformed() == 1);
}

TEST_CASE("reading goes on after a malformed range") {
  RingBuilder ring(kRing_bytes);
  ring.append(RecordBuilder(PERF_RECORD_COMM).build_with_size(0));
  RingReader reader = reader_of(ring);
  CHECK_FALSE(reader.front());
  const uint64_t tail = ring.head();
  ring.append(comm(6, "later"));
  RingReader after(ring.bytes(), layout());
  after.set_range(tail, ring.head());
  CHECK(times_of(after) == std::vector<uint64_t>{6});
}

TEST_CASE("a record without a time has that of the record before it") {
  RingBuilder ring(kRing_bytes);
  ring.append(comm(5, "a")).append(RecordBuilder(PERF_RECORD_SWITCH).build()).append(comm(8, "b"));
  RingReader reader = reader_of(ring);
  CHECK(times_of(reader) == std::vector<uint64_t>{5, 5, 8});
}
