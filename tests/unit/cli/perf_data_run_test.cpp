// What is made of a perf.data file, and when it is given up. The records are built by hand.
#include "cli/perf_data_run.h"

#include "support/catch2.h"
#include "support/perf_data_builder.h"

#include <algorithm>

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

class FakeSink final : public recorder::ChunkSink {
 public:
  Result<void> write(const Profile&, uint32_t) override {
    ++writes;
    if (is_closed) return fail(ErrorCode::Io, "closed");
    return {};
  }
  bool is_broken() const override { return is_closed; }
  bool is_closed = false;
  int writes = 0;
};

// Of the machine this is built for.
#if defined(__x86_64__)
constexpr uint64_t kOwnRegisters = 0xff0fff, kOtherRegisters = 0x1'ffff'ffff;
constexpr size_t kRegisters = 20;
#else
constexpr uint64_t kOwnRegisters = 0x1'ffff'ffff, kOtherRegisters = 0xff0fff;
constexpr size_t kRegisters = 33;
#endif

PerfDataBuilder file_of(uint64_t registers) {
  perf_event_attr attr = stack_attr();
  attr.sample_regs_user = registers;
  return PerfDataBuilder().event(attr, {5});
}

constexpr uint64_t kCode = 0x10'0000;

std::vector<std::byte> mapping_of_code(uint64_t time_ns) {
  return RecordBuilder(PERF_RECORD_MMAP2)
      .u32(1)
      .u32(1)
      .u64(kCode)
      .u64(0x1000)
      .u64(0)
      .zeros(24)
      .u32(5)
      .u32(2)
      .string("/nowhere/program")
      .trailer(1, 1, time_ns, 0, 5)
      .build();
}

std::vector<std::byte> sample(uint64_t time_ns) {
  RecordBuilder record(PERF_RECORD_SAMPLE);
  record.sample_head(5, 1, 1, time_ns, 0).u64(PERF_SAMPLE_REGS_ABI_64);
  for (size_t i = 0; i < kRegisters; ++i) record.u64(kCode);
  return record.u64(8).u64(0x2000).u64(8).build();
}

std::vector<std::byte> arch_feature(std::string_view arch) {
  std::vector<std::byte> bytes;
  append_number<uint32_t>(bytes, static_cast<uint32_t>(arch.size() + 1));
  append(bytes, bytes_of(arch));
  bytes.push_back(std::byte{0});
  return bytes;
}

Result<recorder::RunFigures> convert(const ByteSource& file, recorder::ChunkSink& sink) {
  const auto data = formats::PerfData::open(file);
  REQUIRE(data);
  cli::PerfDataRun run;
  run.chunk_ns = 1'000'000;
  run.max_chunk_json_bytes = 1'000'000;
  return cli::convert_perf_data(*data, run, sink);
}

bool has_note(const recorder::RunFigures& figures, std::string_view words) {
  return std::any_of(figures.notes.begin(), figures.notes.end(), [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("where no machine is named, the registers tell whether it was one like this") {
  FakeSink sink;
  CHECK(convert(file_of(kOwnRegisters).record(sample(100)).file(), sink));
  for (const uint64_t other : {kOtherRegisters, uint64_t{1}}) {
    const auto refused = convert(file_of(other).file(), sink);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::Unsupported);
    CHECK(refused.error().message.find("registers") != std::string::npos);
  }
}

TEST_CASE("a machine that is named is believed") {
  FakeSink sink;
  const auto file = file_of(kOwnRegisters).record(sample(100)).feature(6, arch_feature("riscv64"));
  const auto refused = convert(file.file(), sink);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("riscv64") != std::string::npos);
}

TEST_CASE("a file that is cut off is not told to have been recorded without a clock") {
  FakeSink sink;
  std::vector<std::byte> bytes = file_of(kOwnRegisters).record(sample(100)).bytes();
  const auto whole = convert(MemoryByteSource(bytes), sink);
  REQUIRE(whole);
  CHECK(has_note(*whole, "-k CLOCK_MONOTONIC"));
  bytes.pop_back();
  const auto cut = convert(MemoryByteSource(bytes), sink);
  REQUIRE(cut);
  CHECK(has_note(*cut, "behind the cut"));
  CHECK_FALSE(has_note(*cut, "-k CLOCK_MONOTONIC"));
}

TEST_CASE("a period of a clock is a frequency, one of anything else is not") {
  const auto requested_hz = [](uint64_t config, uint64_t period) {
    perf_event_attr attr = stack_attr();
    attr.config = config;
    attr.freq = 0;
    attr.sample_period = period;
    attr.sample_regs_user = kOwnRegisters;
    FakeSink sink;
    const auto builder = PerfDataBuilder().event(attr, {5}).record(sample(100));
    return convert(builder.file(), sink)->requested_hz;
  };
  for (const uint64_t clock : {PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK}) {
    CHECK(requested_hz(clock, 10'000'000) == 100);
    CHECK(requested_hz(clock, 5'000'000'000) == 1);
    CHECK(requested_hz(clock, 1) == 1'000'000);
    CHECK(requested_hz(clock, 0) == 0);
  }
  CHECK(requested_hz(PERF_COUNT_SW_PAGE_FAULTS, 10'000'000) == 0);
}

TEST_CASE("a file that has more than is read is told of") {
  FakeSink sink;
  auto file = file_of(kOwnRegisters).record(sample(100));
  CHECK_FALSE(has_note(*convert(file.file(), sink), "than are read"));
  file.feature(12, std::vector<std::byte>(formats::kMaxPerfFeature_bytes + 1));
  CHECK(has_note(*convert(file.file(), sink), "than are read"));
}

TEST_CASE("a closed output ends it and is told once") {
  auto builder = file_of(kOwnRegisters);
  constexpr int kChunks = 500;
  builder.record(mapping_of_code(1'000'000'000));
  for (uint64_t i = 0; i < 10 * kChunks; ++i) {
    builder.record(sample(1'000'000'000 + 100'000 * i));
    if (i % 10 == 0) builder.record(finished_round());
  }
  FakeSink open;
  REQUIRE(convert(builder.file(), open));
  REQUIRE(open.writes > kChunks / 2);
  FakeSink closed;
  closed.is_closed = true;
  const auto figures = convert(builder.file(), closed);
  REQUIRE(figures);
  CHECK(closed.writes < kChunks / 10);
  CHECK(figures->write_errors.size() == 1);
  CHECK(has_note(*figures, "not converted"));
}
