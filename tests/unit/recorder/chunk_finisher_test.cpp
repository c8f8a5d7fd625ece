// What becomes of chunks: written, refused, or dropped, and who is told.
#include "recording_fixture.h"
#include "support/catch2.h"

#include <semaphore>
#include <string>

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

TEST_CASE("A forgotten program's place is free again, even if chunks were dropped meanwhile") {
  RecordingFixture run(kNsPerSecond);
  const bool are_dropped = GENERATE(false, true);
  std::binary_semaphore is_writing{0}, goes_on{0};
  run.sink.before_write = [&](uint32_t number) {
    if (number != 1 || !are_dropped) return;
    is_writing.release();
    goes_on.acquire();
  };
  constexpr uint64_t kProgram = 0x400000;
  uint64_t second = 1;
  // All are mapped at one place.
  const auto run_program = [&](uint32_t pid, uint64_t samples) {
    const uint64_t now_ns = second * kNsPerSecond;
    MapEvent map;
    map.pid = map.tid = pid;
    map.begin = {kProgram};
    map.size_bytes = kCode_bytes;
    map.inode = pid;
    const std::string path = "/bin/program" + std::to_string(pid);
    map.path = path;
    run.recording->on_event({now_ns, CommEvent{pid, pid, true, "program"}});
    run.recording->on_event({now_ns, map});
    for (uint64_t i = 1; i <= samples; ++i) run.sample_of(pid, now_ns + i, kProgram + 8, pid);
    run.recording->on_event({now_ns + samples, ExitEvent{pid, pid}});
  };
  const auto end_chunk = [&] { run.recording->on_time(++second * kNsPerSecond); };
  const auto add_chunks = [&](size_t count) {
    for (; count > 0; --count) {
      run.sample(second * kNsPerSecond + 1);
      run.sample(second * kNsPerSecond + 2);
      end_chunk();
    }
  };
  run_program(1'000, 2);
  end_chunk();
  if (are_dropped) {
    is_writing.acquire();
    add_chunks(ChunkFinisher::kMaxQueued);
  }
  for (uint32_t i = 1; i <= target::ImageStore::kMaxUnmapped + 1; ++i) run_program(1'000 + i, 0);
  add_chunks(4);
  goes_on.release();
  while (!run.finisher->has_room_within(kNsPerSecond)) continue;
  run_program(9'000, 2);
  end_chunk();
  const RunFigures figures = run.finish((second + 1) * kNsPerSecond);
  CHECK((figures.sample.loss(Loss::ChunkQueueFull) == 8) == are_dropped);
  const auto leaf_of = [](const Profile& profile) {
    return profile.frames[profile.stack(profile.samples.front().stack)[0]].instruction_addr;
  };
  CHECK(leaf_of(run.sink.profiles.front()) == kProgram + 8);
  CHECK(leaf_of(run.sink.profiles.back()) == kProgram + 8);
}
