// The recording thread's work on hand-made events: no kernel, no target, no clock.
#include "recorder/recording.h"

#include "sentry_prof/limits.h"
#include "support/catch2.h"

#include <array>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::recorder;
using namespace sentry_prof::sampling;

namespace {

constexpr uint64_t kSecond_ns = 1'000'000'000;
constexpr uint32_t kPid = 100;
// Anonymous executable memory: frames are found by frame pointers, no file is opened.
constexpr uint64_t kCode = 0x10000;
constexpr uint64_t kCode_bytes = 0x1000;
constexpr uint64_t kStack = 0x7000'0000;
constexpr uint64_t kCopiedRecords = unwind::kFramesInCommon + 1;
// PERF_REG_X86_BP, SP, IP.
constexpr uint64_t kRegisterMask = (1 << 6) | (1 << 7) | (1 << 8);

class NothingToOpen final : public target::ImageOpener {
 public:
  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts&) override {
    return fail(ErrorCode::NotFound, "no files here");
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(const target::MappingFacts& m) override {
    return open(m);
  }
};

class KeepingSink final : public ChunkSink {
 public:
  Result<void> write(const Profile& profile, uint32_t) override {
    if (is_broken) return fail(ErrorCode::Io, "the disk is full");
    profiles.push_back(profile);
    return {};
  }
  std::vector<Profile> profiles;
  bool is_broken = false;
};

struct Fixture {
  explicit Fixture(uint64_t chunk_ns = 60 * kSecond_ns, bool can_read = true) {
    RecordingOptions options;
    options.chunk_ns = chunk_ns;
    options.max_chunk_json_bytes = limits::kMaxItem_bytes;
    options.frequency_hz = 100;
    options.register_mask = kRegisterMask;
    options.main_pid = kPid;
    if (can_read) {
      options.read_memory = [this](const MemoryRequest& request, std::span<std::byte> out) {
        return read_live(request.address.value, out);
      };
    }
    recording.emplace(std::move(options), processes, images, *finisher, 1 * kSecond_ns);
    map_code(1 * kSecond_ns, kCode);
    recording->on_event({1 * kSecond_ns, CommEvent{kPid, kPid, false, "worker"}});
  }

  void map_code(uint64_t time_ns, uint64_t begin) {
    MapEvent map;
    map.pid = map.tid = kPid;
    map.begin = {begin};
    map.size_bytes = kCode_bytes;
    map.path = "//anon";
    recording->on_event({time_ns, map});
  }

  // A thread interrupted at `pc`, called from kCode + 0x100 by way of the frame pointer.
  void sample(uint64_t time_ns, uint64_t pc = kCode + 8, uint32_t tid = kPid) {
    sample_of(kPid, time_ns, pc, tid);
  }

  void sample_of(uint32_t pid, uint64_t time_ns, uint64_t pc, uint32_t tid) {
    const std::array<uint64_t, 3> words = {kStack, kStack, pc};
    const std::array<uint64_t, 2> stack = {0, kCode + 0x100};
    SampleEvent event;
    event.pid = pid;
    event.tid = tid;
    event.registers = {true, false, std::as_bytes(std::span(words))};
    event.stack = std::as_bytes(std::span(stack));
    ++records_seen;
    recording->on_event({time_ns, event});
  }

  // As the kernel takes it while exec has taken down the old program's memory.
  void sample_in_exec(uint64_t time_ns, uint64_t old_pc) {
    const std::array<uint64_t, 3> words = {kStack, kStack, old_pc};
    SampleEvent event;
    event.pid = event.tid = kPid;
    event.registers = {true, false, std::as_bytes(std::span(words))};
    ++records_seen;
    recording->on_event({time_ns, event});
  }

  // Frame records, and the return addresses of the calls that they stand for.
  static std::vector<uint64_t> copied_words() {
    std::vector<uint64_t> words;
    for (uint64_t i = 0; i < kCopiedRecords; ++i) {
      words.insert(words.end(), {kStack + 16 * (i + 1), kCode + 0x100 + i});
    }
    return words;
  }

  // Interrupted in a deeper frame: the copy has kCopiedRecords frame records, and the last one
  // leads to one that begins where it ends.
  void cut_sample(uint64_t time_ns) { cut_sample(time_ns, kStack); }

  // The same stack with all of its frames, the outermost one where the copies end.
  void whole_deep_sample(uint64_t time_ns) {
    const std::vector<uint64_t> short_copy = std::exchange(copy, copied_words());
    copy.insert(copy.end(), {0, kCode + 0x200});
    cut_sample(time_ns);
    copy = short_copy;
  }

  // A copy that ends before what was asked for.
  void short_sample(uint64_t time_ns) { cut_sample(time_ns, kStack, false); }

  // Interrupted in a frame that is larger than the copy.
  void cut_sample_in_large_frame(uint64_t time_ns) {
    cut_sample(time_ns, kStack + 16 * kCopiedRecords);
  }

  void cut_sample(uint64_t time_ns, uint64_t frame_pointer, bool is_cut = true) {
    const std::array<uint64_t, 3> words = {frame_pointer, kStack, kCode + 8};
    SampleEvent event;
    event.pid = event.tid = kPid;
    event.registers = {true, false, std::as_bytes(std::span(words))};
    event.stack = std::as_bytes(std::span(copy));
    event.stack_is_cut = is_cut;
    ++records_seen;
    recording->on_event({time_ns, event});
  }

  // The process's stack is the copied one now, and goes on with `outer`.
  void stack_goes_on_with(const std::vector<uint64_t>& outer) {
    live_words = copy;
    live_words.insert(live_words.end(), outer.begin(), outer.end());
  }
  void change_inner_half() { live_words[2 * 4 + 1] = kCode + 0x180; }
  void change_copied_part() { live_words[2 * kCopiedRecords - 1] = kCode + 0x180; }

  MemoryRead read_live(uint64_t address, std::span<std::byte> out) const {
    const Bytes bytes = std::as_bytes(std::span(live_words));
    const uint64_t offset = address - kStack;
    if (offset >= bytes.size()) return {};
    const size_t count = std::min<size_t>(out.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
    return {count, read_time_ns};
  }

  void switch_thread(uint64_t time_ns, bool is_out) {
    recording->on_event({time_ns, SwitchEvent{kPid, kPid, is_out}});
  }

  // Ends the run; the figures as Recorder puts them together.
  RunFigures finish(uint64_t end_ns) {
    recording->finish(end_ns);
    while (!finisher->is_finished_within(kSecond_ns)) continue;
    const FinishedFigures finished = finisher->take_figures();
    RunFigures figures;
    figures.sample = recording->figures();
    figures.sampler.sample_records = records_seen;
    figures.samples_written = finished.samples_written;
    figures.chunks_written = finished.chunks_written;
    figures.sample.loss(Loss::ChunkTooSmall) = finished.samples_too_small;
    figures.sample.loss(Loss::ChunkNotWritten) = finished.samples_not_written;
    return figures;
  }

  NothingToOpen opener;
  target::ImageStore images{opener};
  target::ProcessTable processes{images};
  KeepingSink sink;
  std::unique_ptr<ChunkFinisher> finisher = std::move(*ChunkFinisher::start(sink, {0, 0}, 0));
  std::vector<uint64_t> copy = copied_words();  // of the next cut sample
  std::vector<uint64_t> live_words;             // the process's stack now, from kStack on
  uint64_t read_time_ns = 0;
  std::optional<Recording> recording;
  uint64_t records_seen = 0;
};

size_t idle_markers_of(const Profile& profile) {
  size_t count = 0;
  for (const Sample& sample : profile.samples) count += profile.stack(sample.stack).empty();
  return count;
}

}  // namespace

TEST_CASE("Samples become stacks, leaf first, on a named thread") {
  Fixture run;
  run.sample(1 * kSecond_ns + 10);
  run.sample(1 * kSecond_ns + 20);
  run.finish(2 * kSecond_ns);
  REQUIRE(run.sink.profiles.size() == 1);
  const Profile& profile = run.sink.profiles[0];
  REQUIRE(profile.samples.size() == 2);
  const auto stack = profile.stack(profile.samples[0].stack);
  REQUIRE(stack.size() == 2);
  CHECK(profile.frames[stack[0]].instruction_addr == kCode + 8);
  CHECK(profile.frames[stack[1]].instruction_addr == kCode + 0x100);
  REQUIRE(profile.threads.size() == 1);
  CHECK(profile.threads[0].name == "worker");
}

TEST_CASE("A stack deeper than its copy is completed from the process, and the summary knows") {
  Fixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kSecond_ns + 10);
  run.cut_sample(1 * kSecond_ns + 20);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  const Profile& profile = run.sink.profiles.at(0);
  const auto stack = profile.stack(profile.samples[0].stack);
  REQUIRE(stack.size() == kCopiedRecords + 2);
  CHECK(profile.frames[stack.back()].instruction_addr == kCode + 0x200);
  CHECK(figures.samples_complete() == 2);
  CHECK(figures.samples_truncated() == 0);
  CHECK(figures.sample.samples_with_live_frames == 2);
  CHECK(figures.sample.live_frames == 2);
}

TEST_CASE("A stack whose outer part is gone by now keeps what its copy has") {
  Fixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.change_copied_part();  // another call since
  run.cut_sample(1 * kSecond_ns + 10);
  run.stack_goes_on_with({kStack + 8, kCode + 0x200});  // leads nowhere
  run.cut_sample(1 * kSecond_ns + 20);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  const Profile& profile = run.sink.profiles.at(0);
  for (const Sample& sample : profile.samples) {
    CHECK(profile.stack(sample.stack).size() == kCopiedRecords + 1);
  }
  CHECK(figures.samples_truncated() == 2);
  CHECK(figures.sample.samples_with_live_frames == 0);
}

TEST_CASE("The outer part of a stack is believed, too, where it is that of the last whole one") {
  Fixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kSecond_ns + 10);
  run.change_inner_half();
  run.cut_sample(1 * kSecond_ns + 20);
  run.cut_sample_in_large_frame(1 * kSecond_ns + 30);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.samples_with_live_frames == 3);
  CHECK(figures.samples_complete() == 3);
}

TEST_CASE("A short copy ends at a page that was never touched, or where the stack ends") {
  Fixture run;
  run.stack_goes_on_with({});
  run.short_sample(1 * kSecond_ns + 10);
  run.stack_goes_on_with({0, kCode + 0x200});
  run.short_sample(1 * kSecond_ns + 20);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.samples_with_live_frames == 1);
  CHECK(figures.samples_complete() == 1);
  CHECK(figures.samples_truncated() == 0);
  CHECK(figures.samples_failed() == 1);
  CHECK(figures.sample.cut_copies == 1);
}

TEST_CASE("In a frame larger than the copy a stack is believed that was the same before") {
  Fixture run;
  run.stack_goes_on_with({kStack + 16 * (kCopiedRecords + 1), kCode + 0x200, 0, kCode + 0x300});
  run.read_time_ns = 1 * kSecond_ns + 100;
  run.cut_sample_in_large_frame(1 * kSecond_ns + 10);
  run.cut_sample_in_large_frame(1 * kSecond_ns + 20);
  CHECK(run.recording->figures().samples_with_live_frames == 0);
  run.read_time_ns = 1 * kSecond_ns + 200;
  run.cut_sample_in_large_frame(1 * kSecond_ns + 99);  // not looked at before, either
  CHECK(run.recording->figures().samples_with_live_frames == 0);
  run.cut_sample_in_large_frame(1 * kSecond_ns + 101);
  CHECK(run.recording->figures().samples_with_live_frames == 1);
  run.stack_goes_on_with({kStack + 16 * (kCopiedRecords + 1), kCode + 0x280, 0, kCode + 0x300});
  run.cut_sample_in_large_frame(1 * kSecond_ns + 150);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.samples_with_live_frames == 1);
  CHECK(figures.samples_truncated() == 4);
}

TEST_CASE("Where the process has gone on, a stack has the outer frames of the last whole one") {
  Fixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kSecond_ns + 10);
  run.stack_goes_on_with({0, kCode + 0x280});  // another call since
  run.change_copied_part();
  run.cut_sample(1 * kSecond_ns + 20);
  run.live_words.clear();  // the process is gone
  run.cut_sample(1 * kSecond_ns + 30);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  const Profile& profile = run.sink.profiles.at(0);
  for (const Sample& sample : profile.samples) {
    const auto stack = profile.stack(sample.stack);
    REQUIRE(stack.size() == kCopiedRecords + 2);
    CHECK(profile.frames[stack.back()].instruction_addr == kCode + 0x200);
  }
  CHECK(figures.samples_complete() == 3);
  CHECK(figures.samples_truncated() == 0);
  CHECK(figures.sample.samples_with_live_frames == 1);
  CHECK(figures.sample.live_frames == 1);
  CHECK(figures.sample.samples_with_joined_frames == 2);
  CHECK(figures.sample.joined_frames == 2);
}

TEST_CASE("What was read for a sample that it was not believed of is no stack to join with") {
  Fixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.change_copied_part();
  run.read_time_ns = 1 * kSecond_ns + 15;
  run.cut_sample(1 * kSecond_ns + 10);
  run.live_words.clear();
  run.cut_sample(1 * kSecond_ns + 20);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.samples_truncated() == 2);
  CHECK(figures.sample.samples_with_joined_frames == 0);
}

TEST_CASE("A stack that was cut goes on as the thread's next whole one, through the same frames") {
  Fixture run;
  run.cut_sample(1 * kSecond_ns + 10);
  run.cut_sample(1 * kSecond_ns + 20);
  CHECK(run.recording->figures().samples == 2);
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kSecond_ns + 30);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.samples.size() == 3);
  for (const Sample& sample : profile.samples) {
    const auto stack = profile.stack(sample.stack);
    REQUIRE(stack.size() == kCopiedRecords + 2);
    CHECK(profile.frames[stack.back()].instruction_addr == kCode + 0x200);
  }
  CHECK(figures.samples_complete() == 3);
  CHECK(figures.sample.samples_with_joined_frames == 2);
  CHECK(figures.sample.joined_frames == 2);
  CHECK(figures.sample.cut_copies == 3);
}

TEST_CASE("A stack that was cut goes on as no other, no later, and no other chunk's one") {
  const auto joined_with_next = [](auto&& between, uint64_t later_ns) {
    Fixture run;
    run.cut_sample(1 * kSecond_ns + 10);
    between(run);
    run.stack_goes_on_with({0, kCode + 0x200});
    run.cut_sample(1 * kSecond_ns + 10 + later_ns);
    const RunFigures figures = run.finish(2 * kSecond_ns);
    CHECK(figures.samples_complete() + figures.samples_truncated() == run.records_seen);
    std::string what;
    CHECK(figures.law_holds(&what));
    return figures.sample.samples_with_joined_frames;
  };
  const auto nothing = [](Fixture&) {};
  CHECK(joined_with_next(nothing, kMaxJoinAge_ns) == 1);
  CHECK(joined_with_next(nothing, kMaxJoinAge_ns + 1) == 0);
  const auto whole_one = [](Fixture& run) { run.sample(1 * kSecond_ns + 15); };
  CHECK(joined_with_next(whole_one, 20) == 0);
  const auto other_thread = [](Fixture& run) {
    run.sample(1 * kSecond_ns + 15, kCode + 8, kPid + 1);
  };
  CHECK(joined_with_next(other_thread, 20) == 1);
  const auto other_map = [](Fixture& run) { run.map_code(1 * kSecond_ns + 15, 0x50000); };
  CHECK(joined_with_next(other_map, 20) == 0);
  const auto chunk_ends = [](Fixture& run) { run.recording->on_time(61 * kSecond_ns); };
  CHECK(joined_with_next(chunk_ends, 20) == 0);
  const auto other_frame = [](size_t from_end) {
    return
        [from_end](Fixture& run) { run.copy[2 * (kCopiedRecords - from_end) + 1] = kCode + 0x180; };
  };
  CHECK(joined_with_next(other_frame(unwind::kFramesInCommon), 20) == 0);
  CHECK(joined_with_next(other_frame(unwind::kFramesInCommon + 1), 20) == 1);
}

TEST_CASE("Of many samples that wait the oldest are kept as they are") {
  Fixture run;
  WaitingSample one;
  one.frames.resize(kCopiedRecords + 1);
  one.last_steps.resize(unwind::kFramesInCommon);
  const size_t waiting = kMaxWaiting_bytes / one.size_bytes();
  for (size_t i = 0; i < waiting + 10; ++i) run.cut_sample(1 * kSecond_ns + 10 + i);
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kSecond_ns + 10 + waiting + 10);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.samples_with_joined_frames == waiting);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.samples.size() == waiting + 11);
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const bool is_cut = profile.stack(profile.samples[i].stack).size() == kCopiedRecords + 1;
    REQUIRE(is_cut == (i < 10));
  }
}

TEST_CASE("Where no process can be asked, cut stacks go on as whole ones before and after them") {
  Fixture run(60 * kSecond_ns, false);
  run.cut_sample(1 * kSecond_ns + 10);
  run.whole_deep_sample(1 * kSecond_ns + 20);
  run.cut_sample(1 * kSecond_ns + 30);
  run.cut_sample(1 * kSecond_ns + 21 + kMaxJoinAge_ns);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.samples_with_joined_frames == 2);
  CHECK(figures.samples_complete() == 3);
  CHECK(figures.samples_truncated() == 1);
}

TEST_CASE("Samples in exec are a loss of their own until the new program runs") {
  Fixture run;
  run.sample(1 * kSecond_ns + 10);
  run.sample(1 * kSecond_ns + 20);
  run.recording->on_event({1 * kSecond_ns + 30, CommEvent{kPid, kPid, true, "next"}});
  run.sample_in_exec(1 * kSecond_ns + 40, kCode + 8);
  run.map_code(1 * kSecond_ns + 50, 0x50000);
  run.sample_in_exec(1 * kSecond_ns + 60, kCode + 8);
  run.sample(1 * kSecond_ns + 70, 0x50008);
  run.sample_in_exec(1 * kSecond_ns + 80, kCode + 8);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.loss(Loss::DuringExec) == 2);
  CHECK(figures.sample.loss(Loss::UnmappedPc) == 1);
  CHECK(figures.samples_written == 3);
  CHECK(figures.law_holds(nullptr));
}

TEST_CASE("A sleep is drawn as idle from where the thread left the CPU") {
  Fixture run;
  run.sample(1 * kSecond_ns + 10'000'000);
  run.switch_thread(1 * kSecond_ns + 15'000'000, true);
  run.switch_thread(1 * kSecond_ns + 900'000'000, false);
  run.sample(1 * kSecond_ns + 905'000'000);
  run.finish(2 * kSecond_ns);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.samples.size() == 3);
  CHECK(profile.samples[1].unix_time_ns == 1 * kSecond_ns + 15'000'000);
  CHECK(profile.stack(profile.samples[1].stack).empty());
}

TEST_CASE("Chunks are cut by time and every sample is in one of them") {
  Fixture run(kSecond_ns);
  for (uint64_t i = 0; i < 30; ++i) run.sample(1 * kSecond_ns + i * 100'000'000);
  const RunFigures figures = run.finish(4 * kSecond_ns);
  REQUIRE(run.sink.profiles.size() == 3);
  for (const Profile& profile : run.sink.profiles) CHECK(profile.samples.size() == 10);
  CHECK(run.sink.profiles[1].start_unix_ns == run.sink.profiles[0].end_unix_ns);
  CHECK(figures.law_holds(nullptr));
}

TEST_CASE("A chunk ends without events too") {
  Fixture run(kSecond_ns);
  run.sample(1 * kSecond_ns + 10);
  run.sample(1 * kSecond_ns + 20);
  run.recording->on_time(10 * kSecond_ns);
  run.finish(10 * kSecond_ns);
  CHECK(run.sink.profiles.size() == 1);
}

TEST_CASE(
    "A thread that sleeps through a chunk's end is idle in that chunk and absent from the next") {
  Fixture run(kSecond_ns);
  run.sample(1 * kSecond_ns + 10);
  run.sample(1 * kSecond_ns + 20);
  run.switch_thread(1 * kSecond_ns + 30, true);
  run.switch_thread(3 * kSecond_ns + 500, false);
  run.sample(3 * kSecond_ns + 1000);
  run.sample(3 * kSecond_ns + 2000);
  run.finish(4 * kSecond_ns);
  REQUIRE(run.sink.profiles.size() == 2);
  CHECK(idle_markers_of(run.sink.profiles[0]) == 1);
  CHECK(idle_markers_of(run.sink.profiles[1]) == 0);
}

TEST_CASE("A time far ahead passes over empty chunks at once") {
  Fixture run(kSecond_ns);
  run.sample(1 * kSecond_ns + 10);
  run.sample(1 * kSecond_ns + 20);
  constexpr uint64_t kFarAhead_ns = UINT64_MAX / 2;
  run.sample(kFarAhead_ns);
  run.sample(kFarAhead_ns + 10);
  run.finish(kFarAhead_ns + 20);
  REQUIRE(run.sink.profiles.size() == 2);
  // The second one begins in its own second, not where the first one ended: V1 has but 30 s.
  const Profile& later = run.sink.profiles[1];
  CHECK(later.samples[0].unix_time_ns - later.start_unix_ns < kSecond_ns);
}

TEST_CASE("A chunk that the server would refuse is not written, and its samples are a named loss") {
  Fixture run;
  run.sample(1 * kSecond_ns + 10);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(run.sink.profiles.empty());
  CHECK(figures.sample.loss(Loss::ChunkTooSmall) == 1);
  CHECK(figures.law_holds(nullptr));
}

TEST_CASE("A chunk that cannot be written is a named loss") {
  Fixture run;
  run.sink.is_broken = true;
  run.sample(1 * kSecond_ns + 10);
  run.sample(1 * kSecond_ns + 20);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.loss(Loss::ChunkNotWritten) == 2);
  CHECK(figures.law_holds(nullptr));
}

TEST_CASE("A pc outside all mappings is a named loss, not an idle marker") {
  Fixture run;
  run.sample(1 * kSecond_ns + 10, 0x666);
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.loss(Loss::UnmappedPc) == 1);
  CHECK(figures.sample.idle_markers == 0);
  CHECK(figures.law_holds(nullptr));
}

TEST_CASE("Samples without user registers and of 32-bit tasks are named losses") {
  Fixture run;
  SampleEvent without;
  without.pid = without.tid = kPid;
  run.recording->on_event({1 * kSecond_ns + 10, without});
  SampleEvent narrow = without;
  narrow.registers.is_present = narrow.registers.is_32_bit = true;
  run.recording->on_event({1 * kSecond_ns + 20, narrow});
  run.records_seen = 2;
  const RunFigures figures = run.finish(2 * kSecond_ns);
  CHECK(figures.sample.loss(Loss::NoUserRegisters) == 1);
  CHECK(figures.sample.loss(Loss::UnsupportedAbi) == 1);
  CHECK(figures.law_holds(nullptr));
}

TEST_CASE("Two threads that had one tid, one after the other, are two threads of the profile") {
  Fixture run;
  constexpr uint32_t kTid = 7;
  for (uint64_t begin : {1 * kSecond_ns, 1 * kSecond_ns + 1000}) {
    run.recording->on_event({begin, ForkEvent{kPid, kTid, kPid, kPid}});
    run.sample(begin + 10, kCode + 8, kTid);
    run.sample(begin + 20, kCode + 8, kTid);
    run.recording->on_event({begin + 30, ExitEvent{kPid, kTid}});
  }
  run.finish(2 * kSecond_ns);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.threads.size() == 2);
  CHECK(profile.threads[0].id != profile.threads[1].id);
  CHECK(idle_markers_of(profile) == 2);  // each one's end closes its stack
}

TEST_CASE("exec by a thread that is not the leader ends that thread under its old tid") {
  Fixture run;
  constexpr uint32_t kTid = 7;
  run.recording->on_event({1 * kSecond_ns, ForkEvent{kPid, kTid, kPid, kPid}});
  run.sample(1 * kSecond_ns + 10, kCode + 8, kTid);
  run.sample(1 * kSecond_ns + 20, kCode + 8, kTid);
  run.recording->on_event({1 * kSecond_ns + 30, CommEvent{kPid, kPid, true, "other"}});
  const RunFigures figures = run.finish(5 * kSecond_ns);
  CHECK(idle_markers_of(run.sink.profiles.at(0)) == 1);
  CHECK(figures.sample.on_cpu_ns == 20);
}

TEST_CASE("A tid that appears in another process is another thread, even if its end was lost") {
  Fixture run;
  constexpr uint32_t kTid = 7;
  run.sample(1 * kSecond_ns + 10, kCode + 8, kTid);
  run.sample(1 * kSecond_ns + 20, kCode + 8, kTid);
  MapEvent map;
  map.pid = map.tid = kPid + 1;
  map.begin = {kCode};
  map.size_bytes = kCode_bytes;
  map.path = "//anon";
  run.recording->on_event({1 * kSecond_ns + 30, map});
  run.sample_of(kPid + 1, 1 * kSecond_ns + 40, kCode + 8, kTid);
  run.sample_of(kPid + 1, 1 * kSecond_ns + 50, kCode + 8, kTid);
  run.finish(2 * kSecond_ns);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.threads.size() == 2);
  CHECK(profile.threads[0].pid != profile.threads[1].pid);
}
