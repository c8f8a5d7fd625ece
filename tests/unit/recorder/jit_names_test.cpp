// Names of code that was compiled while the target ran. All code of the fixture is such code.
#include "recording_fixture.h"
#include "support/catch2.h"

#include <fmt/format.h>

using namespace sentry_prof;
using namespace sentry_prof::recorder_test;

namespace {

constexpr uint64_t kBegin_ns = kNsPerSecond;

// Where RecordingFixture::sample() is interrupted, and where that was called from.
constexpr std::string_view kMap = "10000 10 leaf\n10010 f0 caller\n";

std::vector<std::string> functions_of(const Profile& profile) {
  std::vector<std::string> functions;
  for (const Frame& frame : profile.frames) functions.push_back(frame.function);
  return functions;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("Frames have the names of their process's JIT map") {
  RecordingFixture run;
  run.jit_maps[kPid] = kMap;
  run.sample(kBegin_ns + 1);
  run.sample(kBegin_ns + 2);
  const RunFigures figures = run.finish(kBegin_ns + 10);
  CHECK(functions_of(run.sink.profiles.at(0)) == Names{"leaf", "caller"});
  CHECK(figures.jit.frames == 2);
  CHECK(figures.jit.frames_named == 2);
  CHECK(figures.jit.bad_map_lines == 0);
}

TEST_CASE("Frames without a JIT map are counted and keep their address") {
  RecordingFixture run;
  run.sample(kBegin_ns + 1);
  run.sample(kBegin_ns + 2);
  const RunFigures figures = run.finish(kBegin_ns + 10);
  CHECK(functions_of(run.sink.profiles.at(0)) == Names{"[anon]+0x8", "[anon]+0x100"});
  CHECK(figures.jit.frames == 2);
  CHECK(figures.jit.frames_named == 0);
  // Of the hottest functions they are one.
  REQUIRE(figures.hottest.size() == 1);
  CHECK(figures.hottest[0].function == "[anon]");
  CHECK(figures.hottest[0].samples == 2);
}

TEST_CASE("A JIT map that begins after the first sample is found when the chunk ends") {
  RecordingFixture run;
  run.sample(kBegin_ns + 1);
  run.jit_maps[kPid] = std::string(kMap) + "no line\n";
  run.sample(kBegin_ns + 2);
  const RunFigures figures = run.finish(kBegin_ns + 10);
  CHECK(functions_of(run.sink.profiles.at(0)) == Names{"leaf", "caller"});
  CHECK(figures.jit.bad_map_lines == 1);
}

TEST_CASE("A JIT map that a process writes last is found at its end") {
  RecordingFixture run;
  run.sample(kBegin_ns + 1);
  run.sample(kBegin_ns + 2);
  run.jit_maps[kPid] = kMap;
  run.recording->on_event({kBegin_ns + 3, ExitEvent{kPid, kPid}});
  run.jit_maps.clear();
  const RunFigures figures = run.finish(kBegin_ns + 10);
  CHECK(functions_of(run.sink.profiles.at(0)) == Names{"leaf", "caller"});
  CHECK(figures.jit.frames_named == 2);
}

TEST_CASE("The next program's JIT map is not taken for that of the one before its exec") {
  RecordingFixture run;
  run.sample(kBegin_ns + 1);
  run.sample(kBegin_ns + 2);
  run.jit_maps[kPid] = kMap;
  run.recording->on_event({kBegin_ns + 3, CommEvent{kPid, kPid, true, "next"}});
  const RunFigures figures = run.finish(kBegin_ns + 10);
  CHECK(figures.jit.frames_named == 0);
}

TEST_CASE("Two programs of one process each have their own JIT map") {
  RecordingFixture run;
  run.jit_maps[kPid] = kMap;
  run.sample(kBegin_ns + 1);
  run.sample(kBegin_ns + 2);
  run.recording->on_event({kBegin_ns + 3, CommEvent{kPid, kPid, true, "next"}});
  run.map_code(kBegin_ns + 4, kCode);
  run.jit_maps[kPid] = "10000 1000 other\n";
  run.sample(kBegin_ns + 5);
  CHECK(run.last_program_begin_ns == kBegin_ns + 3);
  run.sample(kBegin_ns + 6);
  run.finish(kBegin_ns + 10);
  CHECK(functions_of(run.sink.profiles.at(0)) == Names{"leaf", "caller", "other", "other"});
}

TEST_CASE(
    "A program that was not sampled in JIT code before its exec leaves no JIT map to the next") {
  RecordingFixture run;
  run.jit_maps[kPid] = kMap;
  run.recording->on_event({kBegin_ns + 3, CommEvent{kPid, kPid, true, "next"}});
  run.map_code(kBegin_ns + 4, kCode);
  run.sample(kBegin_ns + 5);
  CHECK(run.last_program_begin_ns == kBegin_ns + 3);
}

TEST_CASE("The JIT map of an ended process stays open for its last chunk, and no longer") {
  RecordingFixture run(kNsPerSecond);
  run.jit_maps[kPid] = kMap;
  run.sample(kBegin_ns + 1);
  run.sample(kBegin_ns + 2);
  CHECK(run.open_jit_maps.use_count() == 2);
  run.recording->on_event({kBegin_ns + 3, ExitEvent{kPid, kPid}});
  CHECK(run.open_jit_maps.use_count() == 2);
  run.finish(2 * kBegin_ns);
  CHECK(functions_of(run.sink.profiles.at(0)) == Names{"leaf", "caller"});
  CHECK(run.open_jit_maps.use_count() == 1);
}

TEST_CASE("Code keeps its place and its names when the main thread ends before the others") {
  RecordingFixture run;
  run.jit_maps[kPid] = kMap;
  run.recording->on_event({kBegin_ns, ForkEvent{kPid, 7, kPid, kPid}});
  run.sample(kBegin_ns + 1);
  run.recording->on_event({kBegin_ns + 2, ExitEvent{kPid, kPid}});
  run.jit_maps.clear();
  run.sample(kBegin_ns + 3, kCode + 8, 7);
  run.sample(kBegin_ns + 4, kCode + 8, 7);
  run.finish(kBegin_ns + 10);
  CHECK(functions_of(run.sink.profiles.at(0)) == Names{"leaf", "caller"});
}

TEST_CASE("Bad lines of a JIT map are not counted again for each chunk") {
  RecordingFixture run(kNsPerSecond);
  run.jit_maps[kPid] = std::string(kMap) + "no line\n";
  for (uint64_t chunk = 0; chunk < 3; ++chunk) {
    run.sample(kBegin_ns + chunk * kNsPerSecond + 1);
    run.sample(kBegin_ns + chunk * kNsPerSecond + 2);
  }
  const RunFigures figures = run.finish(kBegin_ns + 3 * kNsPerSecond);
  CHECK(figures.chunks_written == 3);
  CHECK(figures.jit.frames_named == 6);
  CHECK(figures.jit.bad_map_lines == 1);
}

TEST_CASE("Why a JIT map is not used is told once, and the next one looked for") {
  RecordingFixture run(kNsPerSecond);
  run.jit_map_problem = "it is another's";
  for (uint64_t chunk = 0; chunk < 3; ++chunk) {
    run.sample(kBegin_ns + chunk * kNsPerSecond + 1);
    run.sample(kBegin_ns + chunk * kNsPerSecond + 2);
  }
  run.jit_map_problem.reset();
  run.jit_maps[kPid] = kMap;
  const RunFigures figures = run.finish(kBegin_ns + 3 * kNsPerSecond);
  CHECK(run.recording->jit_map_problems() == Names{"it is another's"});
  CHECK(figures.jit.frames_named == 2);
}

TEST_CASE("Regions beyond the limit have no place; those that are known keep theirs") {
  AnonymousRegions regions({});
  size_t placed = 0;
  for (uint64_t i = 0; i < AnonymousRegions::kMaxRegions; ++i) {
    if (regions.number_of(kPid, i * 0x1000, (i + 1) * 0x1000) == AnonymousRegions::kFirst + i) {
      ++placed;
    }
  }
  CHECK(placed == AnonymousRegions::kMaxRegions);
  CHECK(regions.number_of(kPid, UINT64_MAX - 1, UINT64_MAX) == profile::FrameKey::kNoImage);
  CHECK(regions.number_of(kPid + 1, 0, 0x1000) == profile::FrameKey::kNoImage);
  CHECK(regions.number_of(kPid, 0x1000, 0x2000) == AnonymousRegions::kFirst + 1);
}

TEST_CASE("Each chunk has room for as many regions as the first") {
  AnonymousRegions regions({});
  for (uint64_t i = 0; i < AnonymousRegions::kMaxRegions; ++i) {
    regions.number_of(kPid, i * 0x1000, (i + 1) * 0x1000);
  }
  REQUIRE(regions.number_of(kPid + 1, 0, 0x1000) == profile::FrameKey::kNoImage);
  regions.begin_chunk();
  CHECK(regions.number_of(kPid + 1, 0x2000, 0x3000) == AnonymousRegions::kFirst);
  CHECK(regions.number_of(kPid, 0x1000, 0x2000) == AnonymousRegions::kFirst + 1);
  CHECK(regions.region(AnonymousRegions::kFirst).begin == 0x2000);
}

TEST_CASE("Regions of each chunk have places of their own") {
  RecordingFixture run(kNsPerSecond);
  constexpr uint64_t kOther = kCode + 16 * kCode_bytes;
  run.map_code(kBegin_ns, kOther);
  for (const uint64_t code : {kCode, kOther, kCode}) {
    run.sample(run.last_sample_ns + kBegin_ns, code + 8);
    run.sample(run.last_sample_ns + 1, code + 8);
  }
  run.finish(run.last_sample_ns + 1);
  std::vector<uint64_t> leaves;
  for (const Profile& profile : run.sink.profiles) {
    leaves.push_back(profile.frames[profile.stack(profile.samples[0].stack)[0]].instruction_addr);
  }
  CHECK(leaves == std::vector<uint64_t>{kCode + 8, kOther + 8, kCode + 8});
}

TEST_CASE("The JIT map of a process that pauses stays open") {
  RecordingFixture run(kNsPerSecond);
  run.jit_maps[kPid] = kMap;
  run.sample(kBegin_ns + 1);
  run.sample(kBegin_ns + 2);
  run.jit_maps.clear();
  for (uint64_t chunk = 1; chunk <= 3; ++chunk) {
    run.recording->on_time(kBegin_ns + chunk * kNsPerSecond);
  }
  run.sample(kBegin_ns + 3 * kNsPerSecond + 1);
  run.sample(kBegin_ns + 3 * kNsPerSecond + 2);
  const RunFigures figures = run.finish(kBegin_ns + 4 * kNsPerSecond);
  CHECK(figures.jit.frames_named == figures.jit.frames);
}

TEST_CASE("No more than so many JIT maps are open at a time") {
  RecordingFixture run;
  for (uint32_t pid = 1'000; pid < 1'500; ++pid) {
    run.jit_maps[pid] = kMap;
    run.recording->on_event({kBegin_ns, ForkEvent{pid, pid, kPid, kPid}});
    run.sample_of(pid, kBegin_ns + 1, kCode + 8, pid);
    run.sample_of(pid, kBegin_ns + 2, kCode + 8, pid);
  }
  CHECK(run.open_jit_maps.use_count() == AnonymousRegions::kMaxJitMaps + 1);
  const RunFigures figures = run.finish(kBegin_ns + 10);
  CHECK(figures.jit.frames == 1'000);
  CHECK(figures.jit.frames_named == 2 * AnonymousRegions::kMaxJitMaps);
  CHECK(run.recording->jit_map_problems().size() == 1);
}
