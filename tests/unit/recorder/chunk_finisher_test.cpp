// What becomes of chunks: written, refused, or dropped, and who is told.
#include "recording_fixture.h"
#include "support/catch2.h"

#include <semaphore>

using namespace sentry_prof;
using namespace sentry_prof::recorder_test;

TEST_CASE("A disk that stays full, or is full again and again, is told once") {
  RecordingFixture run(kNsPerSecond);
  const auto chunk_at = [&](uint64_t second) {
    run.sample(second * kNsPerSecond + 10);
    run.sample(second * kNsPerSecond + 20);
    run.recording->on_time((second + 1) * kNsPerSecond);
  };
  run.sink.before_write = [&](uint32_t number) { run.sink.is_broken = number != 4; };
  for (uint64_t second = 1; second <= 6; ++second) chunk_at(second);
  const RunFigures figures = run.finish(8 * kNsPerSecond);
  CHECK(figures.chunks_not_written == 5);
  CHECK(figures.write_errors == std::vector<std::string>{"chunk 1: the disk is full"});
  CHECK(run.sink.losses == figures.write_errors);
}

TEST_CASE("A disk that is too slow drops chunks, which is counted each time and told once") {
  RecordingFixture run(kNsPerSecond);
  std::binary_semaphore is_writing{0}, goes_on{0};
  run.sink.before_write = [&](uint32_t number) {
    if (number != 1 && number != 10) return;
    is_writing.release();
    goes_on.acquire();
  };
  uint64_t second = 0;
  const auto add_chunks = [&](size_t count) {
    for (; count > 0; --count) {
      ++second;
      run.sample(second * kNsPerSecond + 10);
      run.sample(second * kNsPerSecond + 20);
      run.recording->on_time((second + 1) * kNsPerSecond);
    }
  };
  for (int stall = 0; stall < 2; ++stall) {
    add_chunks(1);
    is_writing.acquire();
    CHECK(run.finisher->has_room_within(0));
    add_chunks(ChunkFinisher::kMaxQueued);
    CHECK_FALSE(run.finisher->has_room_within(0));
    add_chunks(2);
    goes_on.release();
    while (!run.finisher->has_room_within(kNsPerSecond)) continue;
  }
  const RunFigures figures = run.finish((second + 2) * kNsPerSecond);
  CHECK(figures.sample.loss(Loss::ChunkQueueFull) == 8);
  CHECK(figures.chunks_written == 2 * (1 + ChunkFinisher::kMaxQueued));
  CHECK(run.sink.losses ==
        std::vector<std::string>{"what is recorded is written too slowly: chunks were dropped"});
  CHECK(figures.broken_law().empty());
}

TEST_CASE("A chunk that the server would refuse is not written, and its samples are a named loss") {
  RecordingFixture run;
  run.sample(1 * kNsPerSecond + 10);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(run.sink.profiles.empty());
  CHECK(figures.sample.loss(Loss::ChunkTooSmall) == 1);
  CHECK(figures.broken_law().empty());
}

TEST_CASE("A chunk that cannot be written is a named loss") {
  RecordingFixture run;
  run.sink.is_broken = true;
  run.sample(1 * kNsPerSecond + 10);
  run.sample(1 * kNsPerSecond + 20);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.loss(Loss::ChunkNotWritten) == 2);
  CHECK(figures.broken_law().empty());
}
