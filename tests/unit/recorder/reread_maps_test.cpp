// Maps that are read again where a pc lies in no mapping: its record may have been lost.
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

}  // namespace

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

TEST_CASE("Lost records, and another program in the process, are reasons to read them at once") {
  RecordingFixture run;
  run.sample(kSnapshotAt_ns, 0x90000);
  run.sample(kSnapshotAt_ns + 1, 0x90000);
  CHECK(run.rereads == 1);
  run.recording->on_event({kSnapshotAt_ns + 2, sampling::LostEvent{}});
  run.sample(kSnapshotAt_ns + 3, 0x90000);
  CHECK(run.rereads == 2);
  run.recording->on_event({kSnapshotAt_ns + 4, CommEvent{kPid, kPid, true, "other"}});
  run.sample(kSnapshotAt_ns + 5, 0x90000);
  CHECK(run.rereads == 3);
}

TEST_CASE("For a sample that waited long /proc of now would be a guess") {
  RecordingFixture run;
  run.reread = with_unknown_code;
  run.now_ns = kSnapshotAt_ns + 10 * kNsPerSecond;
  run.sample(kSnapshotAt_ns, kUnknownCode + 8);
  CHECK(run.rereads == 0);
}
