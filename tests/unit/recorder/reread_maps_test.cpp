// Maps that are read again where a pc lies in no mapping, and where records were lost.
#include "recorder/map_rereads.h"
#include "recorder/recording.h"
#include "recording_fixture.h"
#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::recorder_test;

namespace {

constexpr uint64_t kUnknownCode = 0x50000;
constexpr uint64_t kSnapshotAt_ns = 2 * kNsPerSecond;

// As /proc has it: what is known, and what no record told of.
target::ProcessSnapshot with_unknown_code(uint32_t pid) {
  target::ProcessSnapshot snapshot;
  snapshot.pid = pid;
  snapshot.name = "worker";
  snapshot.threads = {{pid, "worker"}};
  snapshot.taken_at_ns = kSnapshotAt_ns;
  for (const uint64_t begin : {kCode, kUnknownCode}) {
    target::MappingFacts mapping;
    mapping.pid = pid;
    mapping.begin = {begin};
    mapping.size_bytes = kCode_bytes;
    mapping.path = "//anon";
    snapshot.mappings.push_back(mapping);
  }
  return snapshot;
}

constexpr uint64_t kLibrary = 0x60000;

target::MappingFacts library(uint32_t pid, const char* path) {
  target::MappingFacts mapping;
  mapping.pid = pid;
  mapping.begin = {kLibrary};
  mapping.size_bytes = kCode_bytes;
  mapping.path = path;
  return mapping;
}

void map_library(RecordingFixture& run, uint64_t time_ns, const char* path) {
  MapEvent map;
  map.pid = map.tid = kPid;
  map.begin = {kLibrary};
  map.size_bytes = kCode_bytes;
  map.path = path;
  run.recording->on_event({time_ns, map});
}

std::string leaf_library(const Profile& profile, size_t sample) {
  const auto stack = profile.stack(profile.samples.at(sample).stack);
  return profile.images.at(profile.frames.at(stack[0]).image).code_file;
}

}  // namespace

TEST_CASE("A library in another one's place whose record was lost has its own name") {
  RecordingFixture run;
  map_library(run, kSnapshotAt_ns, "/lib/before.so");
  run.reread = [](uint32_t pid) {
    target::ProcessSnapshot snapshot = with_unknown_code(pid);
    snapshot.taken_at_ns = kSnapshotAt_ns + 30;
    snapshot.mappings.push_back(library(pid, "/lib/after.so"));
    return snapshot;
  };
  run.sample(kSnapshotAt_ns + 10, kLibrary + 8);
  CHECK(run.rereads == 0);
  run.recording->on_event({kSnapshotAt_ns + 20, LostEvent{1}});
  run.sample(kSnapshotAt_ns + 30, kLibrary + 8);
  run.sample(kSnapshotAt_ns + 40, kLibrary + 8);
  CHECK(run.rereads == 1);
  run.finish(3 * kNsPerSecond);
  const Profile& profile = run.sink.profiles.at(0);
  CHECK(leaf_library(profile, 0) == "/lib/before.so");
  CHECK(leaf_library(profile, 1) == "/lib/after.so");
  CHECK(leaf_library(profile, 2) == "/lib/after.so");
}

TEST_CASE("Maps of the program behind an exec that is still in the ring are not the sample's") {
  RecordingFixture run;
  map_library(run, kSnapshotAt_ns, "/lib/before.so");
  run.reread = [](uint32_t pid) {
    target::ProcessSnapshot snapshot;
    snapshot.pid = pid;
    snapshot.taken_at_ns = kSnapshotAt_ns + 50;
    snapshot.mappings = {library(pid, "/bin/next")};
    snapshot.mappings[0].begin.value += 0x1000'0000;
    return snapshot;
  };
  run.recording->on_event({kSnapshotAt_ns + 20, LostEvent{1}});
  for (const uint64_t ns : {30, 31}) run.sample(kSnapshotAt_ns + ns, kLibrary + 8);
  CHECK(run.rereads == 1);
  run.finish(3 * kNsPerSecond);
  CHECK(leaf_library(run.sink.profiles.at(0), 0) == "/lib/before.so");
}

TEST_CASE("While records get lost again and again maps are read once a second") {
  RecordingFixture run;
  run.reread = [&run](uint32_t pid) {
    target::ProcessSnapshot snapshot = with_unknown_code(pid);
    snapshot.taken_at_ns = run.last_sample_ns;
    return snapshot;
  };
  const auto lose_and_sample = [&run](uint64_t time_ns) {
    run.recording->on_event({time_ns, LostEvent{1}});
    run.sample(time_ns + 1);
  };
  for (uint64_t ms = 0; ms < 3000; ms += 100) lose_and_sample(kSnapshotAt_ns + ms * 1'000'000);
  CHECK(run.rereads == 3);
  run.finish(6 * kNsPerSecond);
}

TEST_CASE("What a process maps after its exec is known whatever was lost before") {
  RecordingFixture run;
  run.recording->on_event({kSnapshotAt_ns, LostEvent{1}});
  run.recording->on_event({kSnapshotAt_ns + 1, CommEvent{kPid, kPid, true, "next"}});
  run.map_code(kSnapshotAt_ns + 2, kCode);
  run.sample(kSnapshotAt_ns + 3);
  CHECK(run.rereads == 0);
  SECTION("and so what its children have of it") {
    run.recording->on_event({kSnapshotAt_ns + 4, ForkEvent{7, 7, kPid, kPid}});
    run.sample_of(7, kSnapshotAt_ns + 5, kCode + 8, 7);
    CHECK(run.rereads == 0);
  }
  SECTION("but not what is lost afterwards") {
    run.recording->on_event({kSnapshotAt_ns + 4, LostEvent{1}});
    run.sample(kSnapshotAt_ns + 5);
    CHECK(run.rereads == 1);
  }
}

TEST_CASE("Maps whose records were lost are read again, and the sample is walked by them") {
  RecordingFixture run;
  run.reread = with_unknown_code;
  run.sample(kSnapshotAt_ns + 10, kUnknownCode + 8);
  run.sample(kSnapshotAt_ns + 20, kUnknownCode + 8);
  CHECK(run.rereads == 1);
  const RunFigures figures = run.finish(3 * kNsPerSecond);
  CHECK(figures.samples_complete() == 2);
  CHECK(figures.sample.loss(Loss::UnmappedPc) == 0);
}

TEST_CASE("Where reading them again does not help it is done ever more seldom") {
  RecordingFixture run;
  run.reread = with_unknown_code;
  const auto sample_nowhere = [&run](uint64_t time_ns) { run.sample(time_ns, 0x90000); };
  sample_nowhere(kSnapshotAt_ns);
  sample_nowhere(kSnapshotAt_ns + kNsPerSecond - 1);
  CHECK(run.rereads == 1);
  sample_nowhere(kSnapshotAt_ns + kNsPerSecond);
  CHECK(run.rereads == 2);
  sample_nowhere(kSnapshotAt_ns + 3 * kNsPerSecond - 1);
  CHECK(run.rereads == 2);
  sample_nowhere(kSnapshotAt_ns + 3 * kNsPerSecond);
  CHECK(run.rereads == 3);
  CHECK(run.finish(kSnapshotAt_ns + 4 * kNsPerSecond).sample.loss(Loss::UnmappedPc) == 5);
}

TEST_CASE("Another program in the process is a reason to read them at once, lost records soon") {
  RecordingFixture run;
  run.sample(kSnapshotAt_ns, 0x90000);
  run.sample(kSnapshotAt_ns + 1, 0x90000);
  CHECK(run.rereads == 1);
  run.sample(kSnapshotAt_ns + kNsPerSecond, 0x90000);
  CHECK(run.rereads == 2);  // the next one would be after two seconds
  run.recording->on_event({kSnapshotAt_ns + kNsPerSecond + 1, sampling::LostEvent{}});
  run.sample(kSnapshotAt_ns + kNsPerSecond + 2, 0x90000);
  CHECK(run.rereads == 2);
  run.sample(kSnapshotAt_ns + 2 * kNsPerSecond, 0x90000);
  CHECK(run.rereads == 3);
  run.recording->on_event(
      {kSnapshotAt_ns + 2 * kNsPerSecond + 4, CommEvent{kPid, kPid, true, "x"}});
  run.sample(kSnapshotAt_ns + 2 * kNsPerSecond + 5, 0x90000);
  CHECK(run.rereads == 4);
}

TEST_CASE("While records get lost, a garbage caller has maps read once a second") {
  MapRereads rereads;
  unsigned count = 0;
  for (uint64_t time_ns = kNsPerSecond; time_ns < 11 * kNsPerSecond; time_ns += 10'000'000) {
    rereads.on_records_lost(time_ns);
    count += rereads.begin(kPid, time_ns + 1);
  }
  CHECK(count == 10);
  // Losses have not made it wait the longer.
  CHECK(rereads.begin(kPid, 12 * kNsPerSecond));
}

TEST_CASE("However often reading them did not help, it is tried each minute") {
  MapRereads rereads;
  uint64_t time_ns = kNsPerSecond, last_ns = 0;
  for (int i = 0; i < 40; ++i) {
    last_ns = time_ns;
    while (!rereads.begin(kPid, time_ns)) time_ns += kNsPerSecond;
  }
  CHECK(time_ns - last_ns == 64 * kNsPerSecond);
}

TEST_CASE("A process with the pid of one that has ended has its maps read at once") {
  RecordingFixture run;
  constexpr uint32_t kChild = 7;
  const auto sample_nowhere = [&](uint64_t time_ns) {
    run.sample_of(kChild, time_ns, 0x90000, kChild);
  };
  // One of both records may be lost.
  const sampling::ForkEvent fork{kChild, kChild, kPid, kPid};
  run.recording->on_event({kSnapshotAt_ns, fork});
  sample_nowhere(kSnapshotAt_ns + 1);
  sample_nowhere(kSnapshotAt_ns + 2);
  CHECK(run.rereads == 1);
  run.recording->on_event({kSnapshotAt_ns + 10, fork});
  sample_nowhere(kSnapshotAt_ns + 11);
  CHECK(run.rereads == 2);
  run.recording->on_event({kSnapshotAt_ns + 20, sampling::ExitEvent{kChild, kChild}});
  sample_nowhere(kSnapshotAt_ns + 21);
  CHECK(run.rereads == 3);
}

TEST_CASE("For a sample that waited long /proc of now would be a guess") {
  RecordingFixture run;
  run.reread = with_unknown_code;
  run.now_ns = kSnapshotAt_ns + 10 * kNsPerSecond;
  run.sample(kSnapshotAt_ns, kUnknownCode + 8);
  CHECK(run.rereads == 0);
}

namespace {

// As /proc has it, too; nobody answers for its file, which may be had later.
void map_silent_library(RecordingFixture& run) {
  run.opener.code = ErrorCode::Io;
  map_library(run, kSnapshotAt_ns, "/lib/hangs.so");
  run.reread = [](uint32_t pid) {
    target::ProcessSnapshot snapshot = with_unknown_code(pid);
    snapshot.mappings.push_back(library(pid, "/lib/hangs.so"));
    return snapshot;
  };
  run.now_ns = kSnapshotAt_ns + 10;
}

}  // namespace

TEST_CASE("A sample that is walked again, by maps that were read again, counts once") {
  RecordingFixture run(60 * kNsPerSecond, false);
  map_silent_library(run);
  run.copy.back() = kLibrary + 0x100;
  run.cut_sample(kSnapshotAt_ns + 10);
  CHECK(run.rereads == 1);
  const RunFigures figures = run.finish(3 * kNsPerSecond);
  CHECK(figures.samples_truncated() == 1);
  CHECK(figures.sample.cut_copies == 1);
}

TEST_CASE("A file that nobody gave is asked for again where a whole stack comes through it, too") {
  RecordingFixture run(60 * kNsPerSecond, false);
  map_silent_library(run);
  run.sample(kSnapshotAt_ns + 10, kLibrary + 8);
  CHECK(run.rereads == 1);
  run.sample(kSnapshotAt_ns + 10 + kNsPerSecond, kLibrary + 8);
  CHECK(run.rereads == 2);
  CHECK(run.finish(kSnapshotAt_ns + 3 * kNsPerSecond).samples_complete() == 2);
}
