// The recording thread's work on hand-made events.
#include "recorder/recording.h"

#include "recording_fixture.h"
#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::recorder_test;

namespace {

size_t idle_markers_of(const Profile& profile) {
  size_t count = 0;
  for (const Sample& sample : profile.samples) count += profile.stack(sample.stack).empty();
  return count;
}

}  // namespace

TEST_CASE("The idle tasks' time is no thread's") {
  RecordingFixture run;
  run.recording->on_event({1 * kNsPerSecond, sampling::SwitchEvent{0, 0, false}});
  run.recording->on_event({9 * kNsPerSecond, sampling::SwitchEvent{0, 0, true}});
  run.sample(9 * kNsPerSecond + 10);
  run.sample(9 * kNsPerSecond + 20);
  CHECK(run.finish(10 * kNsPerSecond).sample.on_cpu_ns < 2 * kNsPerSecond);
}

TEST_CASE("Samples become stacks, leaf first, on a named thread") {
  RecordingFixture run;
  run.sample(1 * kNsPerSecond + 10);
  run.sample(1 * kNsPerSecond + 20);
  run.finish(2 * kNsPerSecond);
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

TEST_CASE("Stacks that end in a file of which only the name is known are counted") {
  RecordingFixture run;
  MapEvent map;
  map.pid = map.tid = kPid;
  map.begin = {0x900000};
  map.size_bytes = 0x1000;
  map.path = "/absent/library.so";
  run.recording->on_event({2 * kNsPerSecond, map});
  const std::array<uint64_t, 3> words = {kStack, /*no frame pointer*/ 42, 0x900010};
  const std::array<uint64_t, 2> stack{};
  SampleEvent event;
  event.pid = event.tid = kPid;
  event.registers = {true, false, std::as_bytes(std::span(words))};
  event.stack = std::as_bytes(std::span(stack));
  run.recording->on_event({3 * kNsPerSecond, event});
  run.sample(4 * kNsPerSecond);
  CHECK(run.recording->figures().samples == 2);
  CHECK(run.recording->figures().samples_ending_in_unread_files == 1);
}

#ifdef __x86_64__
TEST_CASE("Code that no file holds is read from its process") {
  using unwind::FrameOrigin;
  const bool can_be_read = GENERATE(false, true);
  RecordingFixture run;
  run.put_code_that_returns();
  if (!can_be_read) run.live_code.clear();
  run.sample(kNsPerSecond + 1);
  const SampleFigures& figures = run.recording->figures();
  const auto of_origin = [&](FrameOrigin origin) {
    return figures.frames_by_origin[static_cast<size_t>(origin)];
  };
  CHECK(of_origin(FrameOrigin::Code) == (can_be_read ? 1 : 0));
  CHECK(of_origin(FrameOrigin::FramePointer) == (can_be_read ? 0 : 1));
  CHECK(run.recording->walker().code_pages_not_read() == (can_be_read ? 0 : 1));
}

TEST_CASE("Code that was compiled since its page was read is read again where the walk failed") {
  RecordingFixture run;
  constexpr std::array<uint64_t, 3> kRegisters = {5, kStack, kCode + 8};  // no frame pointer
  constexpr std::array<uint64_t, 3> kWords = {5, kCode + 0x100, 5};
  SampleEvent event;
  event.pid = event.tid = kPid;
  event.registers = {true, false, std::as_bytes(std::span(kRegisters))};
  event.stack = std::as_bytes(std::span(kWords));
  run.recording->on_event({kNsPerSecond, event});
  const auto& origins = run.recording->figures().frames_by_origin;
  CHECK(origins[static_cast<size_t>(unwind::FrameOrigin::Code)] == 0);
  run.put_code_that_returns();
  run.recording->on_event({kNsPerSecond + kNsPerSecond / 100, event});
  CHECK(origins[static_cast<size_t>(unwind::FrameOrigin::Code)] == 1);
  CHECK(run.reads == 2);
}

TEST_CASE("Code of the program before an exec, or of an ended process, is forgotten") {
  RecordingFixture run;
  run.put_code_that_returns();
  run.sample(kNsPerSecond + 1);
  CHECK(run.reads == 1);
  SECTION("exec") {
    run.recording->on_event({kNsPerSecond + 2, CommEvent{kPid, kPid, true, "next"}});
  }
  SECTION("end") {
    run.recording->on_event({kNsPerSecond + 2, ExitEvent{kPid, kPid}});
    run.recording->on_event({kNsPerSecond + 2, ForkEvent{kPid, kPid, 1, 1}});
  }
  run.map_code(kNsPerSecond + 3, kCode);
  run.sample(kNsPerSecond + 4);
  CHECK(run.reads == 2);
}
#endif

TEST_CASE("Samples in exec are a loss of their own until the new program runs") {
  RecordingFixture run;
  run.sample(1 * kNsPerSecond + 10);
  run.sample(1 * kNsPerSecond + 20);
  run.recording->on_event({1 * kNsPerSecond + 30, CommEvent{kPid, kPid, true, "next"}});
  run.sample_in_exec(1 * kNsPerSecond + 40, kCode + 8);
  run.map_code(1 * kNsPerSecond + 50, 0x50000);
  run.sample_in_exec(1 * kNsPerSecond + 60, 0x50008);  // of the old program, where the new has code
  run.sample(1 * kNsPerSecond + 70, 0x50008);
  run.sample_in_exec(1 * kNsPerSecond + 80, kCode + 8);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.loss(Loss::DuringExec) == 2);
  CHECK(figures.sample.loss(Loss::UnmappedPc) == 1);
  CHECK(figures.samples_written == 3);
  CHECK(figures.broken_law().empty());
}

TEST_CASE("Where records were lost, no process is taken to be in exec still") {
  RecordingFixture run;
  run.sample(1 * kNsPerSecond + 10);
  run.sample(1 * kNsPerSecond + 20);
  run.recording->on_event({1 * kNsPerSecond + 30, CommEvent{kPid, kPid, true, "next"}});
  run.recording->on_event({1 * kNsPerSecond + 40, LostEvent{}});
  run.sample_in_exec(1 * kNsPerSecond + 50, kCode + 8);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.loss(Loss::DuringExec) == 0);
  CHECK(figures.sample.loss(Loss::UnmappedPc) == 1);
}

TEST_CASE("A sleep is drawn as idle from where the thread left the CPU") {
  RecordingFixture run;
  run.sample(1 * kNsPerSecond + 10'000'000);
  run.switch_thread(1 * kNsPerSecond + 15'000'000, true);
  run.switch_thread(1 * kNsPerSecond + 900'000'000, false);
  run.sample(1 * kNsPerSecond + 905'000'000);
  run.finish(2 * kNsPerSecond);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.samples.size() == 3);
  CHECK(profile.samples[1].unix_time_ns == 1 * kNsPerSecond + 15'000'000);
  CHECK(profile.stack(profile.samples[1].stack).empty());
}

TEST_CASE("Chunks are cut by time and every sample is in one of them") {
  RecordingFixture run(kNsPerSecond);
  for (uint64_t i = 0; i < 30; ++i) run.sample(1 * kNsPerSecond + i * 100'000'000);
  const RunFigures figures = run.finish(4 * kNsPerSecond);
  REQUIRE(run.sink.profiles.size() == 3);
  for (const Profile& profile : run.sink.profiles) CHECK(profile.samples.size() == 10);
  CHECK(run.sink.profiles[1].start_unix_ns == run.sink.profiles[0].end_unix_ns);
  CHECK(figures.broken_law().empty());
}

TEST_CASE("A chunk ends without events too") {
  RecordingFixture run(kNsPerSecond);
  run.sample(1 * kNsPerSecond + 10);
  run.sample(1 * kNsPerSecond + 20);
  run.recording->on_time(10 * kNsPerSecond);
  run.finish(10 * kNsPerSecond);
  CHECK(run.sink.profiles.size() == 1);
}

TEST_CASE(
    "A thread that sleeps through a chunk's end is idle in that chunk and absent from the next") {
  RecordingFixture run(kNsPerSecond);
  run.sample(1 * kNsPerSecond + 10);
  run.sample(1 * kNsPerSecond + 20);
  run.switch_thread(1 * kNsPerSecond + 30, true);
  run.switch_thread(3 * kNsPerSecond + 500, false);
  run.sample(3 * kNsPerSecond + 1000);
  run.sample(3 * kNsPerSecond + 2000);
  run.finish(4 * kNsPerSecond);
  REQUIRE(run.sink.profiles.size() == 2);
  CHECK(idle_markers_of(run.sink.profiles[0]) == 1);
  CHECK(idle_markers_of(run.sink.profiles[1]) == 0);
}

TEST_CASE("A time far ahead passes over empty chunks at once") {
  RecordingFixture run(kNsPerSecond);
  run.sample(1 * kNsPerSecond + 10);
  run.sample(1 * kNsPerSecond + 20);
  constexpr uint64_t kFarAhead_ns = UINT64_MAX / 2;
  run.sample(kFarAhead_ns);
  run.sample(kFarAhead_ns + 10);
  run.finish(kFarAhead_ns + 20);
  REQUIRE(run.sink.profiles.size() == 2);
  // The second one begins in its own second, not where the first one ended: V1 has but 30 s.
  const Profile& later = run.sink.profiles[1];
  CHECK(later.samples[0].unix_time_ns - later.start_unix_ns < kNsPerSecond);
}

TEST_CASE("Chunks have the time of the clocks when they were recorded") {
  RecordingFixture run(kNsPerSecond);
  const auto record_two = [&](uint64_t time_ns) {
    run.sample(time_ns + 1);
    run.sample(time_ns + 2);
  };
  record_two(1 * kNsPerSecond);
  // Half a chunk later it was found that the wall clock is an hour ahead.
  constexpr uint64_t kHour_ns = 3600 * kNsPerSecond;
  run.recording->on_clock_step(1'500'000'000, {1'500'000'000, kHour_ns + 1'500'000'000});
  record_two(1'500'000'000);
  record_two(2'500'000'000);
  // At the very begin of a chunk there is nothing to cut.
  run.recording->on_clock_step(3'500'000'000, {0, 0});
  record_two(3'500'000'000);
  const RunFigures figures = run.finish(4 * kNsPerSecond);
  std::vector<uint64_t> times_ns;
  for (const Profile& profile : run.sink.profiles) {
    CHECK(profile.start_unix_ns <= profile.samples[0].unix_time_ns);
    CHECK(profile.end_unix_ns >= profile.samples[1].unix_time_ns);
    times_ns.push_back(profile.samples[0].unix_time_ns);
  }
  CHECK(times_ns == std::vector<uint64_t>{kNsPerSecond + 1, kHour_ns + 1'500'000'001,
                                          kHour_ns + 2'500'000'001, 3'500'000'001});
  CHECK(figures.sample.clock_steps == 2);
  CHECK(figures.broken_law().empty());
}

TEST_CASE("A first chunk is longer, and has the time of the clocks when it was recorded, too") {
  constexpr uint64_t kSlack_ns = 20'000'000, kFirst_ns = 1 * kNsPerSecond;
  RecordingFixture run(kNsPerSecond, true, kSlack_ns);
  run.sample(kFirst_ns + 1);
  run.sample(kFirst_ns + 2);
  constexpr uint64_t kHour_ns = 3600 * kNsPerSecond, kStep_ns = kFirst_ns + 15'000'000;
  run.recording->on_clock_step(kStep_ns, {kStep_ns, kHour_ns + kStep_ns});
  // That is no first chunk any more.
  run.sample(kStep_ns + kNsPerSecond - 2);
  run.sample(kStep_ns + kNsPerSecond - 1);
  run.sample(kStep_ns + kNsPerSecond);
  run.finish(kStep_ns + kNsPerSecond + 1);
  REQUIRE(run.sink.profiles.size() == 2);
  CHECK(run.sink.profiles[0].samples[0].unix_time_ns == kFirst_ns + 1);
  CHECK(run.sink.profiles[1].samples.size() == 2);
  CHECK(run.sink.profiles[1].samples[0].unix_time_ns == kHour_ns + kStep_ns + kNsPerSecond - 2);

  RecordingFixture whole(kNsPerSecond, true, kSlack_ns);
  for (const uint64_t offset_ns : {uint64_t{1}, kNsPerSecond + kSlack_ns - 1}) {
    whole.sample(kFirst_ns + offset_ns);
  }
  whole.finish(kFirst_ns + kNsPerSecond + kSlack_ns);
  REQUIRE(whole.sink.profiles.size() == 1);
  CHECK(whole.sink.profiles[0].samples.size() == 2);
}

TEST_CASE("Programs that have ended are forgotten with the chunks, but for the last ones") {
  RecordingFixture run(kNsPerSecond);
  constexpr uint32_t kPrograms = target::ImageStore::kMaxUnmapped + 500;
  const auto run_program = [&](uint32_t number) {
    const uint32_t pid = 1'000 + number;
    const std::string path = "/bin/program" + std::to_string(number);
    MapEvent map;
    map.pid = map.tid = pid;
    map.begin = {kCode};
    map.size_bytes = kCode_bytes;
    map.inode = number + 1;
    map.path = path;
    run.recording->on_event({1 * kNsPerSecond, CommEvent{pid, pid, true, "program"}});
    run.recording->on_event({1 * kNsPerSecond, map});
    run.recording->on_event({1 * kNsPerSecond, ExitEvent{pid, pid}});
  };
  for (uint32_t number = 0; number < kPrograms; ++number) run_program(number);
  run.sample(1 * kNsPerSecond + 1);
  run.sample(1 * kNsPerSecond + 2);
  const auto remembers = [&](uint32_t id) { return run.images.image(id) != nullptr; };
  REQUIRE(run.images.images_seen() == kPrograms);
  run.recording->on_time(2 * kNsPerSecond);  // samples may still come
  const size_t kept = run.processes.kept_process_count();
  run.recording->on_time(3 * kNsPerSecond);
  CHECK(run.processes.kept_process_count() < kept);
  CHECK_FALSE(remembers(0));
  CHECK_FALSE(remembers(499));
  CHECK(remembers(500));
  CHECK(remembers(kPrograms - 1));
  run.finish(4 * kNsPerSecond);
}

TEST_CASE("Processes whose ends no record told are forgotten, too") {
  RecordingFixture run(kNsPerSecond);
  for (const uint32_t pid : {7U, 8U}) {
    run.recording->on_event({1 * kNsPerSecond, ForkEvent{pid, pid, kPid, kPid}});
    run.sample_of(pid, 1 * kNsPerSecond + pid, kCode + 8, pid);
  }
  REQUIRE(run.processes.kept_process_count() == 3);
  run.gone = {7};
  run.recording->on_time(2 * kNsPerSecond);
  CHECK(run.processes.living_processes() == std::vector<uint32_t>{7, 8, kPid});
  // Its end may be in the ring: what it did before is still its own.
  run.sample_of(7, 2 * kNsPerSecond + 1, kCode + 8, 7);
  for (uint64_t chunk = 3; chunk < 6; ++chunk) run.recording->on_time(chunk * kNsPerSecond);
  CHECK(run.processes.living_processes() == std::vector<uint32_t>{8, kPid});
  CHECK(run.processes.kept_process_count() == 2);
  run.finish(9 * kNsPerSecond);
}

TEST_CASE("A process that is gone is ended once what it did before has come out of the ring") {
  RecordingFixture run(kNsPerSecond);
  run.recording->on_event({1 * kNsPerSecond, ForkEvent{7, 7, kPid, kPid}});
  run.gone = {7};
  // The recording was held up for five chunks; what is in the ring is of before.
  run.now_ns = 5 * kNsPerSecond + 1;
  for (uint64_t chunk = 2; chunk < 6; ++chunk) run.recording->on_time(chunk * kNsPerSecond);
  CHECK(run.processes.living_processes() == std::vector<uint32_t>{7, kPid});
  run.recording->on_time(8 * kNsPerSecond);
  CHECK(run.processes.living_processes() == std::vector<uint32_t>{kPid});
  run.finish(9 * kNsPerSecond);
}

TEST_CASE("A process of which all records but that of a mapping were lost is forgotten") {
  RecordingFixture run(kNsPerSecond);
  MapEvent map;
  map.pid = map.tid = 7;
  map.begin = {kCode};
  map.size_bytes = kCode_bytes;
  map.path = "//anon";
  run.recording->on_event({1 * kNsPerSecond, map});
  REQUIRE(run.processes.kept_process_count() == 2);
  run.gone = {7};
  for (uint64_t chunk = 2; chunk < 6; ++chunk) run.recording->on_time(chunk * kNsPerSecond);
  CHECK(run.processes.kept_process_count() == 1);
  run.finish(9 * kNsPerSecond);
}

TEST_CASE("Chunks are called after the program that the main process runs") {
  RecordingFixture run(kNsPerSecond);
  const auto chunk_at = [&](uint64_t begin_ns) {
    run.sample(begin_ns + 10);
    run.sample(begin_ns + 20);
    run.recording->on_time(begin_ns + kNsPerSecond);
  };
  chunk_at(1 * kNsPerSecond);
  run.recording->on_event({2 * kNsPerSecond + 1, CommEvent{kPid, kPid, true, "server"}});
  run.map_code(2 * kNsPerSecond + 2, kCode);
  chunk_at(2 * kNsPerSecond);
  chunk_at(3 * kNsPerSecond);
  run.finish(5 * kNsPerSecond);
  REQUIRE(run.sink.profiles.size() == 3);
  CHECK(run.sink.profiles[0].session.release == "worker");
  CHECK(run.sink.profiles[1].session.release == "server");
  CHECK(run.sink.profiles[2].session.release == "server");
}

TEST_CASE("Transactions are called by what can be shown of the program's name") {
  for (const auto& [name, expected] : std::map<std::string, std::string>{
           {"a\x1b[31m\xff", "a\uFFFD[31m\uFFFD"},
           {std::string(3000, 'x'), std::string(197, 'x') + "\u2026"}}) {
    RecordingFixture run(kNsPerSecond);
    run.recording->on_event({1 * kNsPerSecond + 1, CommEvent{kPid, kPid, false, name}});
    run.sample(1 * kNsPerSecond + 10);
    run.sample(1 * kNsPerSecond + 20);
    run.finish(2 * kNsPerSecond);
    CHECK(run.sink.profiles.at(0).session.transaction_name == expected);
  }
}

TEST_CASE("What the main program was called is known when others go on without it") {
  RecordingFixture run(kNsPerSecond);
  constexpr uint32_t kDaemon = 7;
  run.recording->on_event({1 * kNsPerSecond, ForkEvent{kDaemon, kDaemon, kPid, kPid}});
  run.recording->on_event({1 * kNsPerSecond + 1, ExitEvent{kPid, kPid}});
  for (uint64_t chunk = 2; chunk < 6; ++chunk) run.recording->on_time(chunk * kNsPerSecond);
  run.sample_of(kDaemon, 6 * kNsPerSecond + 1, kCode + 8, kDaemon);
  run.sample_of(kDaemon, 6 * kNsPerSecond + 2, kCode + 8, kDaemon);
  run.finish(7 * kNsPerSecond);
  REQUIRE(run.sink.profiles.size() == 1);
  CHECK(run.sink.profiles[0].session.transaction_name == "worker");
  CHECK(run.processes.process_count() == 2);
}

TEST_CASE("A pc outside all mappings is a named loss, not an idle marker") {
  RecordingFixture run;
  run.sample(1 * kNsPerSecond + 10, 0x666);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.loss(Loss::UnmappedPc) == 1);
  CHECK(figures.sample.idle_markers == 0);
  CHECK(figures.broken_law().empty());
}

TEST_CASE("Samples without user registers and of 32-bit tasks are named losses") {
  RecordingFixture run;
  SampleEvent without;
  without.pid = without.tid = kPid;
  run.recording->on_event({1 * kNsPerSecond + 10, without});
  SampleEvent narrow = without;
  narrow.registers.is_present = narrow.registers.is_32_bit = true;
  run.recording->on_event({1 * kNsPerSecond + 20, narrow});
  run.records_seen = 2;
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.loss(Loss::NoUserRegisters) == 1);
  CHECK(figures.sample.loss(Loss::UnsupportedAbi) == 1);
  CHECK(figures.broken_law().empty());
}

TEST_CASE("Two threads that had one tid, one after the other, are two threads of the profile") {
  RecordingFixture run;
  constexpr uint32_t kTid = 7;
  for (uint64_t begin : {1 * kNsPerSecond, 1 * kNsPerSecond + 1000}) {
    run.recording->on_event({begin, ForkEvent{kPid, kTid, kPid, kPid}});
    run.sample(begin + 10, kCode + 8, kTid);
    run.sample(begin + 20, kCode + 8, kTid);
    run.recording->on_event({begin + 30, ExitEvent{kPid, kTid}});
  }
  run.finish(2 * kNsPerSecond);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.threads.size() == 2);
  CHECK(profile.threads[0].id != profile.threads[1].id);
  CHECK(idle_markers_of(profile) == 2);  // each one's end closes its stack
}

TEST_CASE("threads that an exec ends have the name of the program that they were of") {
  RecordingFixture run;
  constexpr uint32_t kChild = kPid + 1, kPool = 7;
  constexpr uint64_t kTime_ns = kNsPerSecond;
  run.recording->on_event({kTime_ns, ForkEvent{kChild, kChild, kPid, kPid}});
  run.recording->on_event({kTime_ns, CommEvent{kChild, kChild, false, "before"}});
  run.recording->on_event({kTime_ns, ForkEvent{kChild, kPool, kChild, kChild}});
  run.recording->on_event({kTime_ns, CommEvent{kChild, kPool, false, "pool"}});
  run.sample_of(kChild, kTime_ns + 10, kCode + 8, kPool);
  run.sample_of(kChild, kTime_ns + 20, kCode + 8, kPool);
  run.recording->on_event({kTime_ns + 30, CommEvent{kChild, kChild, true, "after"}});
  run.finish(2 * kNsPerSecond);
  CHECK(run.sink.profiles.at(0).threads.at(0).name == "pool (before 101)");
}

TEST_CASE("exec by a thread that is not the leader ends that thread under its old tid") {
  RecordingFixture run;
  constexpr uint32_t kTid = 7;
  run.recording->on_event({1 * kNsPerSecond, ForkEvent{kPid, kTid, kPid, kPid}});
  run.sample(1 * kNsPerSecond + 10, kCode + 8, kTid);
  run.sample(1 * kNsPerSecond + 20, kCode + 8, kTid);
  run.recording->on_event({1 * kNsPerSecond + 30, CommEvent{kPid, kPid, true, "other"}});
  const RunFigures figures = run.finish(5 * kNsPerSecond);
  CHECK(idle_markers_of(run.sink.profiles.at(0)) == 1);
  CHECK(figures.sample.on_cpu_ns == 20);
}

TEST_CASE("A tid that appears in another process is another thread, even if its end was lost") {
  RecordingFixture run;
  constexpr uint32_t kTid = 7;
  run.sample(1 * kNsPerSecond + 10, kCode + 8, kTid);
  run.sample(1 * kNsPerSecond + 20, kCode + 8, kTid);
  MapEvent map;
  map.pid = map.tid = kPid + 1;
  map.begin = {kCode};
  map.size_bytes = kCode_bytes;
  map.path = "//anon";
  run.recording->on_event({1 * kNsPerSecond + 30, map});
  run.sample_of(kPid + 1, 1 * kNsPerSecond + 40, kCode + 8, kTid);
  run.sample_of(kPid + 1, 1 * kNsPerSecond + 50, kCode + 8, kTid);
  run.finish(2 * kNsPerSecond);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.threads.size() == 2);
  CHECK(profile.threads[0].pid != profile.threads[1].pid);
}

TEST_CASE("The main process's name is kept where the record of its end was lost") {
  RecordingFixture run(kNsPerSecond);
  constexpr uint32_t kDaemon = 7;
  run.recording->on_event({1 * kNsPerSecond, ForkEvent{kDaemon, kDaemon, kPid, kPid}});
  run.gone = {kPid};
  for (uint64_t chunk = 2; chunk < 6; ++chunk) run.recording->on_time(chunk * kNsPerSecond);
  run.sample_of(kDaemon, 6 * kNsPerSecond + 1, kCode + 8, kDaemon);
  run.sample_of(kDaemon, 6 * kNsPerSecond + 2, kCode + 8, kDaemon);
  for (uint64_t chunk = 7; chunk < 12; ++chunk) {
    run.recording->on_time(chunk * kNsPerSecond);
    run.sample_of(kDaemon, chunk * kNsPerSecond + 1, kCode + 8, kDaemon);
    run.sample_of(kDaemon, chunk * kNsPerSecond + 2, kCode + 8, kDaemon);
  }
  run.finish(12 * kNsPerSecond);
  CHECK(run.sink.profiles.back().session.transaction_name == "worker");
  CHECK(run.processes.process_count() == 2);
}

TEST_CASE("Another program that gets the main process's pid is not the main one") {
  RecordingFixture run(kNsPerSecond);
  constexpr uint32_t kDaemon = 7;
  run.recording->on_event({1 * kNsPerSecond, ForkEvent{kDaemon, kDaemon, kPid, kPid}});
  run.recording->on_event({1 * kNsPerSecond + 1, ExitEvent{kPid, kPid}});
  run.recording->on_event({2 * kNsPerSecond, ForkEvent{kPid, kPid, kDaemon, kDaemon}});
  run.recording->on_event({2 * kNsPerSecond + 1, CommEvent{kPid, kPid, true, "other"}});
  run.sample_of(kDaemon, 2 * kNsPerSecond + 3, kCode + 8, kDaemon);
  run.sample_of(kDaemon, 2 * kNsPerSecond + 4, kCode + 8, kDaemon);
  run.finish(3 * kNsPerSecond);
  CHECK(run.sink.profiles.back().session.transaction_name == "worker");
}
