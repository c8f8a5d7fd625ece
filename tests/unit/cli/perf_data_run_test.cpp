// What is made of a perf.data file, and when it is given up. The records are built by hand.
#include "cli/perf_data_run.h"

#include "support/catch2.h"
#include "support/perf_data_builder.h"

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

std::vector<std::byte> sample(uint64_t time_ns) {
  return RecordBuilder(PERF_RECORD_SAMPLE)
      .sample_head(5, 1, 1, time_ns, 0)
      .u64(PERF_SAMPLE_REGS_ABI_64)
      .zeros(8 * kRegisters)
      .u64(8)
      .u64(0x2000)
      .u64(8)
      .build();
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
