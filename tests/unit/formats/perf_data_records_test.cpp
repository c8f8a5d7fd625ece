// Going through records: what is compressed, cut off, damaged.
#include "formats/perf_data_records.h"

#include "sampling/record_decoder.h"
#include "support/catch2.h"
#include "support/perf_data_builder.h"

using namespace sentry_prof;
using namespace sentry_prof::formats;
using namespace sentry_prof::test;

namespace {

struct Visited {
  std::vector<uint32_t> types;
  size_t bytes = 0;
  Result<PerfRecordsEnd> end = PerfRecordsEnd::Whole;
};

Visited visit(const std::vector<std::byte>& bytes, PerfRecordRange range) {
  Visited visited;
  visited.end = for_each_perf_record(MemoryByteSource(bytes), range, [&](Bytes record) {
    visited.types.push_back(sampling::read_record_header(record).type);
    visited.bytes += record.size();
  });
  return visited;
}

Visited visit(const std::vector<std::byte>& bytes) { return visit(bytes, {0, bytes.size()}); }

using Types = std::vector<uint32_t>;

}  // namespace

TEST_CASE("records are visited in the order of the file, between its offsets only") {
  std::vector<std::byte> bytes = comm(1, 2, 3, "a");
  append(bytes, finished_round());
  append(bytes, stack_sample(1, 2, 3));
  CHECK(visit(bytes).types == Types{PERF_RECORD_COMM, 68, PERF_RECORD_SAMPLE});
  const size_t begin = comm(1, 2, 3, "a").size();
  CHECK(visit(bytes, {begin, 8}).types == Types{68});
  CHECK(visit(bytes, {begin, UINT64_MAX}).types == Types{68, PERF_RECORD_SAMPLE});
  CHECK(visit(bytes, {bytes.size(), 100}).types.empty());
  CHECK_FALSE(visit(bytes, {bytes.size() + 1, 1}).end);
}

TEST_CASE("records that do not fit into what is read at once are whole") {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 50; ++i) append(bytes, RecordBuilder(9).zeros(65'000 - i).build());
  const Visited visited = visit(bytes);
  CHECK(visited.types.size() == 50);
  CHECK(visited.bytes == bytes.size());
  CHECK(*visited.end == PerfRecordsEnd::Whole);
}

TEST_CASE("what is cut off or has an impossible size ends the visit") {
  std::vector<std::byte> bytes = comm(1, 2, 3, "a");
  for (const uint16_t size : {uint16_t{0}, uint16_t{1}, uint16_t{7}}) {
    std::vector<std::byte> damaged = bytes;
    append(damaged, RecordBuilder(9).zeros(8).build_with_size(size));
    CHECK(visit(damaged).types == Types{PERF_RECORD_COMM});
    CHECK(*visit(damaged).end == PerfRecordsEnd::Malformed);
  }
  append(bytes, comm(1, 2, 3, "b"));
  for (const size_t missing : {size_t{1}, size_t{8}, comm(1, 2, 3, "b").size() - 1}) {
    const Visited visited = visit({bytes.begin(), bytes.end() - static_cast<ptrdiff_t>(missing)});
    CHECK(visited.types == Types{PERF_RECORD_COMM});
    CHECK(*visited.end == PerfRecordsEnd::CutOff);
  }
}

TEST_CASE("compressed records are one stream, and others may begin in one and end in the next") {
  std::vector<std::byte> plain;
  for (int i = 0; i < 100; ++i) append(plain, comm(1, 2, 3, "name"));
  Compressor compressor;
  std::vector<std::byte> bytes = finished_round();
  constexpr size_t kPiece = 37;
  for (size_t at = 0; at < plain.size(); at += kPiece) {
    const size_t end = std::min(at + kPiece, plain.size());
    append(bytes, compressor.record({plain.begin() + static_cast<ptrdiff_t>(at),
                                     plain.begin() + static_cast<ptrdiff_t>(end)}));
  }
  append(bytes, finished_round());
  const Visited visited = visit(bytes);
  REQUIRE(visited.types.size() == 102);
  CHECK(visited.types.front() == 68);
  CHECK(visited.types[50] == PERF_RECORD_COMM);
  CHECK(visited.types.back() == 68);
  CHECK(*visited.end == PerfRecordsEnd::Whole);
}

TEST_CASE("the newer compressed record says how many of its bytes count") {
  Compressor compressor;
  const std::vector<std::byte> old = compressor.record(comm(1, 2, 3, "name"));
  RecordBuilder record(83);
  record.u64(old.size() - 8);
  record.raw({reinterpret_cast<const char*>(old.data()) + 8, old.size() - 8});
  CHECK(visit(record.zeros(5).build()).types == Types{PERF_RECORD_COMM});
  CHECK(*visit(RecordBuilder(83).u64(9).zeros(8).build()).end == PerfRecordsEnd::Malformed);
}

TEST_CASE("compressed data that is damaged or cut off ends the visit") {
  Compressor compressor;
  std::vector<std::byte> bytes = compressor.record(comm(1, 2, 3, "name"));
  std::vector<std::byte> damaged = bytes;
  damaged.back() ^= std::byte{0xff};
  damaged[bytes.size() / 2] ^= std::byte{0xff};
  CHECK(*visit(damaged).end == PerfRecordsEnd::Malformed);
  std::vector<std::byte> half = comm(1, 2, 3, "name");
  half.resize(half.size() - 3);
  Compressor other;
  CHECK(*visit(other.record(half)).end == PerfRecordsEnd::CutOff);
}

TEST_CASE("compressed records that go on from an earlier file are refused with the next step") {
  Compressor compressor;
  compressor.record(comm(1, 2, 3, "in the file before"));
  const Visited visited = visit(compressor.record(comm(1, 2, 3, "name")));
  REQUIRE_FALSE(visited.end);
  CHECK(visited.end.error().code == ErrorCode::Unsupported);
  CHECK(visited.end.error().message.find("--switch-output") != std::string::npos);
}

TEST_CASE("what expands to more than is allowed is given up") {
  std::vector<std::byte> zeros = RecordBuilder(9).zeros(60'000).build();
  Compressor compressor;
  std::vector<std::byte> bytes;
  for (int i = 0; i < 100; ++i) append(bytes, compressor.record(zeros));
  const Visited visited = visit(bytes, {0, bytes.size(), 1'000'000});
  REQUIRE_FALSE(visited.end);
  CHECK(visited.end.error().code == ErrorCode::LimitExceeded);
  CHECK(visited.bytes <= 1'000'000);
}

TEST_CASE("the data behind AUXTRACE and TRACING_DATA is passed over") {
  std::vector<std::byte> bytes = RecordBuilder(71).u64(100).zeros(32).build();
  bytes.resize(bytes.size() + 100);
  append(bytes, RecordBuilder(66).u32(9).u32(0).build());
  bytes.resize(bytes.size() + 16);
  append(bytes, finished_round());
  CHECK(visit(bytes).types == Types{71, 66, 68});
  for (const uint64_t size : {uint64_t{1'000}, UINT64_MAX}) {
    const Visited visited = visit(RecordBuilder(71).u64(size).zeros(32).build());
    CHECK(visited.types == Types{71});
    CHECK(*visited.end == PerfRecordsEnd::CutOff);
  }
}

TEST_CASE("records have perf's names") {
  CHECK(name_of_perf_record(PERF_RECORD_KSYMBOL) == "KSYMBOL");
  CHECK(name_of_perf_record(PERF_RECORD_MMAP) == "MMAP");
  CHECK(name_of_perf_record(21) == "AUX_OUTPUT_HW_ID");
  CHECK(name_of_perf_record(69) == "ID_INDEX");
  CHECK(name_of_perf_record(79) == "TIME_CONV");
  CHECK(name_of_perf_record(0) == "unknown");
  CHECK(name_of_perf_record(60) == "unknown");
  CHECK(name_of_perf_record(4711) == "unknown");
}
