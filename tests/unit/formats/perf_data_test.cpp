// Whole files: from bytes to events.
#include "formats/perf_data.h"

#include "sampling/record_counter.h"
#include "support/catch2.h"
#include "support/perf_data_builder.h"
#include "unit/formats/played.h"

#include <string>

using namespace sentry_prof;
using namespace sentry_prof::formats;
using namespace sentry_prof::formats_test;
using namespace sentry_prof::test;

namespace {

std::string refusal(const ByteSource& file) {
  const auto data = PerfData::open(file);
  REQUIRE_FALSE(data);
  CHECK(data.error().code == ErrorCode::Unsupported);
  return data.error().message;
}

std::vector<std::byte> mapping(uint32_t pid, uint64_t time_ns, std::string_view path,
                               uint64_t inode = 7) {
  return RecordBuilder(PERF_RECORD_MMAP2)
      .u32(pid)
      .u32(pid)
      .u64(0x1000)
      .u64(0x1000)
      .u64(0)
      .u32(8)  // of the device
      .u32(1)
      .u64(inode)
      .u64(0)
      .u32(5)
      .u32(2)
      .string(path)
      .trailer(pid, pid, time_ns, 0, 5)
      .build();
}

// A pipe that has told of the event with id 5.
std::vector<std::byte> begun_pipe() {
  std::vector<std::byte> file = bytes_of("PERFILE2");
  append_number<uint64_t>(file, 16);
  const perf_event_attr attr = stack_attr();
  append(file,
         RecordBuilder(64).raw({reinterpret_cast<const char*>(&attr), sizeof attr}).u64(5).build());
  return file;
}

std::vector<std::byte> build_id(std::string_view path, uint64_t id) {
  RecordBuilder record(67, PERF_RECORD_MISC_USER | (1u << 15));
  return record.u32(1).u64(id).zeros(12).u8(8).zeros(3).string(path).build();
}

std::vector<std::byte> lost(uint32_t type, uint64_t count) {
  RecordBuilder record(type);
  if (type == PERF_RECORD_LOST) record.u64(5);
  return record.u64(count).trailer(1, 1, 900, 0, 5).build();
}

}  // namespace

TEST_CASE("events come in order of time, and the survey knows the first and the last") {
  const Played played = play(one_event()
                                 .record(stack_sample(5, 1, 300))
                                 .record(stack_sample(5, 2, 100))
                                 .record(finished_round())
                                 .record(stack_sample(5, 3, 200))
                                 .record(stack_sample(5, 4, 500))
                                 .record(finished_round())
                                 .record(stack_sample(5, 5, 400))
                                 .file());
  CHECK(played.sink.times == Times{100, 200, 300, 400, 500});
  CHECK(played.sink.sample_tids == Tids{2, 3, 1, 5, 4});
  CHECK(played.survey.first_time_ns == 100);
  CHECK(played.survey.last_time_ns == 500);
  CHECK(played.survey.main_pid == 1);
  CHECK(played.figures.stats.sample_records == 5);
  CHECK(played.figures.late_records == 0);
}

TEST_CASE("one damaged time does not ruin the others") {
  constexpr uint64_t kNow_ns = 30'000'000'000'000'000;  // a year up
  for (const uint64_t damaged : {uint64_t{1}, uint64_t{1} << 62}) {
    for (const uint64_t place : {0, 2, 4}) {
      auto builder = one_event();
      for (uint64_t i = 0; i < 5; ++i) {
        builder.record(
            stack_sample(5, static_cast<uint32_t>(i + 1), i == place ? damaged : kNow_ns + i));
        builder.record(finished_round());
      }
      const Played played = play(builder.file());
      CHECK(played.survey.last_time_ns - played.survey.first_time_ns < 5);
      CHECK(played.sink.times.front() >= kNow_ns);
      CHECK(played.sink.times.back() < kNow_ns + 5);
      CHECK(played.sink.sample_tids.size() == 4);
      CHECK(played.figures.stats.undecodable_samples == 1);
      CHECK(played.figures.late_records == 0);
    }
  }
}

TEST_CASE("several damaged times do not ruin the others, wherever they stand") {
  constexpr uint64_t kNow_ns = 30'000'000'000'000'000, kDay_ns = 24 * 3600 * 1'000'000'000ULL;
  constexpr uint64_t kFar_ns = uint64_t{1} << 62;
  for (const uint64_t place : {0, 50, 100}) {
    auto builder = one_event();
    for (uint64_t i = 0; i <= 100; ++i) {
      // Two that are near to each other, and more others than are kept apart.
      for (uint64_t damaged = 0; i == place && damaged < 40; ++damaged) {
        builder.record(stack_sample(5, 9, kFar_ns + damaged / 2 * 10 * kDay_ns));
      }
      if (i < 100) builder.record(stack_sample(5, 1, kNow_ns + i));
    }
    const Played played = play(builder.file());
    CHECK(played.survey.first_time_ns == kNow_ns);
    CHECK(played.survey.last_time_ns == kNow_ns + 99);
    CHECK(played.sink.sample_tids == Tids(100, 1));
    CHECK(played.figures.stats.undecodable_samples == 40);
  }
}

TEST_CASE("a recording in which nothing happened for weeks is one recording") {
  constexpr uint64_t kDay_ns = 24 * 3600 * 1'000'000'000ULL;
  auto builder = one_event();
  for (uint64_t i = 0; i < 400; ++i) {
    builder.record(stack_sample(5, 1, kDay_ns + i + (i < 3 ? 0 : 20 * kDay_ns)));
  }
  const Played played = play(builder.file());
  CHECK(played.survey.first_time_ns == kDay_ns);
  CHECK(played.survey.last_time_ns == 21 * kDay_ns + 399);
  CHECK(played.sink.sample_tids.size() == 400);
}

TEST_CASE("playing stops once nothing more is wanted") {
  const auto file = one_event()
                        .record(stack_sample(5, 1, 300))
                        .record(stack_sample(5, 2, 400))
                        .record(finished_round())
                        .record(stack_sample(5, 3, 500))
                        .record(finished_round())
                        .record(stack_sample(5, 4, 600))
                        .file();
  const auto data = PerfData::open(file);
  REQUIRE(data);
  KeepingSink sink;
  const auto figures = data->play(sink, [&sink] { return sink.sample_tids.empty(); });
  REQUIRE(figures);
  CHECK(sink.sample_tids == Tids{1});
  CHECK(figures->stats.sample_records == 1);
}

TEST_CASE("what perf wrote itself has no time and comes where it stands") {
  const Played played = play(one_event()
                                 .record(comm(0, 1, 0, "synthesized"))
                                 .record(stack_sample(5, 1, 300))
                                 .record(finished_round())
                                 .record(finished_round())
                                 .record(comm(0, 1, UINT64_MAX, "no time either"))
                                 .file());
  CHECK(played.sink.times == Times{300, 300, 300});
}

TEST_CASE("compressed files are the same") {
  Compressor compressor;
  std::vector<std::byte> both = stack_sample(5, 1, 300);
  append(both, stack_sample(5, 2, 200));
  const Played played = play(one_event().record(compressor.record(both)).file());
  CHECK(played.sink.sample_tids == Tids{2, 1});
}

TEST_CASE("a pipe's events, features and build ids stand in records") {
  std::vector<std::byte> file = begun_pipe();
  append(file, RecordBuilder(80).u64(6).u32(8).raw("x86_64").zeros(2).build());
  append(file, stack_sample(5, 1, 300));
  append(file, mapping(1, 200, "/bin/a"));
  append(file, build_id("/bin/a", 0x0807060504030201));
  const MemoryByteSource source(file);
  const auto data = PerfData::open(source);
  REQUIRE(data);
  CHECK(data->header().arch == "x86_64");
  const Played played = play(source);
  CHECK(played.sink.times == Times{200, 300});
  REQUIRE(played.sink.maps.size() == 1);
  CHECK(played.sink.maps[0].build_id_size_bytes == 8);
  CHECK(played.sink.maps[0].build_id[7] == std::byte{8});
  CHECK(played.figures.skipped.empty());
}

TEST_CASE("of a path that was several files no build id is taken") {
  std::vector<std::byte> file = begun_pipe();
  append(file, stack_sample(5, 1, 300));
  append(file, build_id("/replaced", 1));
  append(file, build_id("/in two containers", 2));
  append(file, build_id("/in two containers", 3));
  append(file, build_id("/twice", 4));
  append(file, build_id("/twice", 4));
  append(file, mapping(1, 201, "/replaced"));
  append(file, mapping(2, 202, "/replaced", 8));
  append(file, mapping(3, 203, "/in two containers"));
  append(file, mapping(4, 204, "/twice"));
  append(file, mapping(5, 205, "/twice"));
  const Played played = play(MemoryByteSource(file));
  std::vector<uint8_t> sizes;
  for (const auto& map : played.sink.maps) sizes.push_back(map.build_id_size_bytes);
  CHECK(sizes == std::vector<uint8_t>{0, 0, 0, 8, 8});
}

TEST_CASE("a pipe may tell of an event between any two records") {
  const perf_event_attr attr = stack_attr();
  const std::string_view attr_bytes(reinterpret_cast<const char*>(&attr), sizeof attr);
  std::vector<std::byte> file = bytes_of("PERFILE2");
  append_number<uint64_t>(file, 16);
  for (uint64_t i = 1; i <= 200; ++i) {
    append(file, RecordBuilder(64).raw(attr_bytes).u64(i).u64(1'000 + i).build());
    append(file, stack_sample(1'000 + i, static_cast<uint32_t>(i), 100 * i));
  }
  append(file, stack_sample(1, 7, 30'000));
  append(file, stack_sample(999, 8, 30'000));
  const Played played = play(MemoryByteSource(file));
  CHECK(played.sink.sample_tids == Tids{1, 7});
  CHECK(played.figures.samples_of_other_events == 199);
  CHECK(played.figures.stats.undecodable_samples == 1);  // 999 is nobody's
  CHECK(played.survey.last_time_ns == 30'000);
}

TEST_CASE("samples of idle CPUs are left out, and no loss") {
  const auto builder = PerfDataBuilder()
                           .event(stack_attr(), {5})
                           .record(stack_sample(5, 0, 100))
                           .record(stack_sample(5, 3, 200))
                           .record(stack_sample(5, 0, 300));
  const Played played = play(builder.file());
  CHECK(played.sink.sample_tids == Tids{3});
  CHECK(played.figures.idle_samples == 2);
  CHECK(played.figures.stats.sample_records == 1);
}

TEST_CASE("mappings of the kernel are counted and left out") {
  const Played played = play(one_event()
                                 .record(mapping(UINT32_MAX, 0, "[kernel.kallsyms]_text"))
                                 .record(mapping(1, 100, "/bin/a"))
                                 .file());
  CHECK(played.sink.maps.size() == 1);
  CHECK(played.figures.kernel_mappings == 1);
}

TEST_CASE("records that say nothing of stacks are counted by name") {
  const Played played =
      play(one_event()
               .record(RecordBuilder(PERF_RECORD_KSYMBOL).zeros(16).trailer(0, 0, 1, 0, 5).build())
               .record(RecordBuilder(79).zeros(48).build())
               .record(RecordBuilder(79).zeros(48).build())
               .record(RecordBuilder(4711).zeros(8).build())
               .record(RecordBuilder(4712).zeros(8).build())
               .file());
  CHECK(played.figures.skipped ==
        std::map<std::string, uint64_t>{{"KSYMBOL", 1}, {"TIME_CONV", 2}, {"unknown", 2}});
}

TEST_CASE("what perf sums up at the end is not counted twice as lost") {
  const Played both = play(one_event()
                               .record(lost(PERF_RECORD_LOST, 10))
                               .record(lost(PERF_RECORD_LOST_SAMPLES, 7))
                               .file());
  CHECK(both.figures.stats.lost_samples == 7);
  CHECK(both.figures.stats.lost_records == 3);
  const Played sum = play(one_event().record(lost(PERF_RECORD_LOST_SAMPLES, 7)).file());
  CHECK(sum.figures.stats.lost_samples == 7);
  const Played alone = play(one_event().record(lost(PERF_RECORD_LOST, 10)).file());
  CHECK(alone.figures.stats.lost_samples == 10);
  CHECK(alone.figures.stats.lost_records == 0);
}

TEST_CASE("losses beyond all numbers do not begin at zero again") {
  for (const uint32_t type : {PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES}) {
    const Played played =
        play(one_event().record(lost(type, UINT64_MAX)).record(lost(type, 10)).file());
    CHECK(played.figures.stats.lost_samples == sampling::kMostLost);
  }
}

TEST_CASE("a sum of losses that has no time is counted, and is no event") {
  const auto sum = RecordBuilder(PERF_RECORD_LOST_SAMPLES).u64(7).trailer(1, 1, 0, 0, 5).build();
  const Played played = play(one_event()
                                 .record(stack_sample(5, 1, 300))
                                 .record(sum)
                                 .record(stack_sample(5, 1, 400))
                                 .file());
  CHECK(played.sink.times == Times{300, 400});
  CHECK(played.figures.stats.lost_samples == 7);
}

TEST_CASE("what perf's own filter did not want is no loss") {
  const auto filtered =
      RecordBuilder(PERF_RECORD_LOST_SAMPLES, 1 << 15).u64(5000).trailer(1, 1, 900, 0, 5).build();
  const Played played =
      play(one_event().record(lost(PERF_RECORD_LOST, 10)).record(filtered).file());
  CHECK(played.figures.filtered_samples == 5000);
  CHECK(played.figures.stats.lost_samples == 10);
}

TEST_CASE("a recording is not named after a thread of the kernel") {
  const Played played = play(one_event()
                                 .record(kernel_sample(5, 15, 100))
                                 .record(stack_sample(5, 7, 200))
                                 .record(stack_sample(5, 8, 300))
                                 .file());
  CHECK(played.survey.main_pid == 7);
  CHECK(play(one_event().record(kernel_sample(5, 15, 100)).file()).survey.main_pid == 0);
}

TEST_CASE("a rest that cannot be read is told and counted") {
  std::vector<std::byte> file = one_event().record(stack_sample(5, 1, 300)).bytes();
  append(file, {std::byte{1}, std::byte{2}});
  const uint64_t none = 0;
  std::memcpy(file.data() + 48, &none, sizeof none);  // as perf leaves it when it is killed
  const Played cut = play(MemoryByteSource(file));
  CHECK(cut.sink.sample_tids == Tids{1});
  CHECK(cut.survey.end == PerfRecordsEnd::CutOff);
  CHECK(cut.figures.stats.undecodable_samples == 1);
  file.resize(file.size() - 2);
  const Played killed = play(MemoryByteSource(file));
  CHECK(killed.sink.sample_tids == Tids{1});
  CHECK(killed.survey.end == PerfRecordsEnd::Whole);
  CHECK(killed.figures.stats.undecodable_samples == 0);  // all that there is was read
  const Played damaged = play(one_event()
                                  .record(stack_sample(5, 1, 300))
                                  .record(RecordBuilder(9).build_with_size(3))
                                  .file());
  CHECK(damaged.survey.end == PerfRecordsEnd::Malformed);
  CHECK(damaged.figures.stats.sample_records == 2);
}

TEST_CASE("samples that break their own format are undecodable") {
  const Played played = play(one_event()
                                 .record(RecordBuilder(PERF_RECORD_SAMPLE).zeros(8).build())
                                 .record(stack_sample(5, 1, uint64_t{1} << 63))
                                 .record(stack_sample(5, 2, 100))
                                 .file());
  CHECK(played.figures.stats.sample_records == 3);
  CHECK(played.figures.stats.undecodable_samples == 1);
  CHECK(played.survey.last_time_ns == 100);
  CHECK(played.sink.times.back() == 100);
}

namespace {

// Counts what is read of it.
struct WatchedSource final : ByteSource {
  explicit WatchedSource(const ByteSource& source) : bytes(source) {}
  uint64_t size_bytes() const override { return bytes.size_bytes(); }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    read_bytes += out.size();
    return bytes.read_at(offset, out);
  }

  const ByteSource& bytes;
  mutable uint64_t read_bytes = 0;
};

}  // namespace

TEST_CASE("events without stacks are refused before any record is read") {
  perf_event_attr bare = stack_attr();
  bare.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  PerfDataBuilder records;
  records.event(bare, {});
  for (uint64_t i = 0; i < 1000; ++i) records.record(stack_sample(5, 1, i));
  const auto file = records.file();
  const WatchedSource source(file);
  CHECK_FALSE(PerfData::open(source));
  CHECK(source.read_bytes < file.size_bytes() / 2);
}

TEST_CASE("what cannot be unwound is refused with the next step") {
  perf_event_attr chains = stack_attr();
  chains.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
  CHECK(refusal(PerfDataBuilder().event(chains, {}).file()).find("call chains only") !=
        std::string::npos);
  perf_event_attr bare = chains;
  bare.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  CHECK(refusal(PerfDataBuilder().event(bare, {}).file()).find("--call-graph dwarf") !=
        std::string::npos);
  CHECK(refusal(PerfDataBuilder().file()).find("no stacks") != std::string::npos);
  perf_event_attr timeless = stack_attr();
  timeless.sample_type = kSampleType & ~uint64_t{PERF_SAMPLE_TIME};
  CHECK(refusal(PerfDataBuilder().event(timeless, {5}).file())
            .find("no time. Record with: perf record -T") != std::string::npos);
  perf_event_attr without_id = stack_attr();
  without_id.sample_type = kSampleType & ~uint64_t{PERF_SAMPLE_IDENTIFIER};
  CHECK(refusal(PerfDataBuilder().event(stack_attr(), {5}).event(without_id, {6}).file())
            .find("apart") != std::string::npos);
}

TEST_CASE("a file that expands without end is given up") {
  Compressor compressor;
  auto builder = one_event();
  for (int i = 0; i < 100; ++i)
    builder.record(compressor.record(RecordBuilder(70).zeros(60'000).build()));
  const auto file = builder.file();
  const auto data = PerfData::open(file, 1'000'000);
  REQUIRE_FALSE(data);
  CHECK(data.error().code == ErrorCode::LimitExceeded);
}
