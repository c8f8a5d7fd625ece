#include "profile/chunk_builder.h"

#include "support/catch2.h"

using namespace sentry_prof::profile;

namespace {

constexpr uint64_t kSecond_ns = 1'000'000'000;

FrameKey leaf(uint64_t pc) { return {.image = 0, .is_exact = true, .pc = pc}; }
FrameKey caller(uint64_t pc) { return {.image = 0, .is_exact = false, .pc = pc}; }

std::vector<FrameKey> stack_of(const RawChunk& chunk, uint32_t stack) {
  std::vector<FrameKey> frames;
  for (uint32_t i = chunk.stack_begin[stack]; i < chunk.stack_begin[stack + 1]; ++i) {
    frames.push_back(chunk.frames[chunk.stack_frame_indices[i]]);
  }
  return frames;
}

}  // namespace

TEST_CASE("ChunkBuilder keeps equal stacks once and tells unequal ones apart") {
  ChunkBuilder builder(0);
  const uint32_t thread = builder.thread(10, 10, 0);
  const std::vector<FrameKey> a = {leaf(1), caller(2)};
  const std::vector<FrameKey> b = {leaf(1), caller(2), caller(3)};
  const std::vector<FrameKey> c = {caller(1), caller(2)};  // same pcs as a, another kind of pc
  for (const auto& frames : {a, b, a, c}) builder.add_sample(1, thread, frames);
  const RawChunk chunk = builder.finish(kSecond_ns);

  REQUIRE(chunk.samples.size() == 4);
  CHECK(chunk.samples[0].stack == chunk.samples[2].stack);
  CHECK(chunk.stack_begin.size() == 5);  // the empty one and three
  CHECK(chunk.frames.size() == 4);       // leaf 1, caller 1, 2, 3
  CHECK(stack_of(chunk, chunk.samples[1].stack) == b);
  CHECK(stack_of(chunk, chunk.samples[3].stack) == c);
}

TEST_CASE("ChunkBuilder takes over outer frames of the sample before, and no others") {
  ChunkBuilder builder(0);
  const uint32_t thread = builder.thread(1, 1, 0);
  const std::vector<std::vector<FrameKey>> stacks = {
      {leaf(1), caller(2), caller(3)},
      {leaf(4), caller(5), caller(2), caller(3)},  // deeper, two in common
      {leaf(1), caller(2), caller(3)},             // the same two, less deep
      {caller(2), caller(3)},                      // nothing but what is in common
      {},
      {leaf(4), caller(5), caller(2), caller(3)},
      {leaf(4), caller(5), caller(2), caller(6)},  // another root
  };
  for (int round = 0; round < 2; ++round) {
    for (const auto& frames : stacks) builder.add_sample(1, thread, frames);
    const RawChunk chunk = builder.finish(kSecond_ns);
    CHECK(chunk.frames.size() == 6);
    CHECK(chunk.stack_begin.size() == 6);  // the empty one and four
    for (size_t i = 0; i < stacks.size(); ++i) {
      CHECK(stack_of(chunk, chunk.samples[i].stack) == stacks[i]);
    }
    builder.thread(1, 1, 0);
  }
}

TEST_CASE("ChunkBuilder finds every stack again after its tables have grown") {
  ChunkBuilder builder(0);
  const uint32_t thread = builder.thread(1, 1, 0);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t pc = 0; pc < 20'000; ++pc) {
      const FrameKey frames[] = {leaf(pc), caller(pc * 4096), {.image = 1, .pc = pc % 7}};
      builder.add_sample(pc, thread, frames);
    }
  }
  const RawChunk chunk = builder.finish(kSecond_ns);
  CHECK(chunk.stack_begin.size() == 20'000 + 2);
  CHECK(chunk.frames.size() == 20'000 + 20'000 + 7);
  // Sorted by time, each stack stands there twice in a row.
  CHECK(stack_of(chunk, chunk.samples[12'345].stack)[1] == caller(12'345 / 2 * 4096));
}

TEST_CASE("An empty stack is stack 0 and does not count towards a valid chunk") {
  ChunkBuilder builder(0);
  const uint32_t thread = builder.thread(1, 1, 0);
  const FrameKey frames[] = {leaf(1)};
  builder.add_sample(1, thread, frames);
  builder.add_sample(2, thread, {});
  RawChunk chunk = builder.finish(kSecond_ns);
  CHECK(chunk.samples[1].stack == 0);
  CHECK(stack_of(chunk, 0).empty());
  CHECK(chunk.samples_with_stack() == 1);
  CHECK_FALSE(chunk.can_be_valid());
}

TEST_CASE("A chunk can be valid once one thread has two samples with a stack") {
  const FrameKey frames[] = {leaf(1)};
  ChunkBuilder builder(0);
  builder.add_sample(1, builder.thread(1, 1, 0), frames);
  builder.add_sample(2, builder.thread(1, 2, 0), frames);
  CHECK_FALSE(builder.finish(5).can_be_valid());
  builder.add_sample(6, builder.thread(1, 1, 0), frames);
  builder.add_sample(7, builder.thread(1, 1, 0), frames);
  CHECK(builder.finish(10).can_be_valid());
}

TEST_CASE("Threads are told apart by process, tid and generation") {
  ChunkBuilder builder(0);
  const uint32_t a = builder.thread(1, 5, 0);
  CHECK(builder.thread(1, 5, 1) != a);
  CHECK(builder.thread(2, 5, 0) != a);
  CHECK(builder.thread(1, 6, 0) != a);
  CHECK(builder.thread(1, 5, 0) == a);
  builder.name_thread(a, "old", "p");
  builder.name_thread(a, "new", "p");
  const RawChunk chunk = builder.finish(1);
  CHECK(chunk.threads.size() == 4);
  CHECK(chunk.threads[a].name == "new");
}

TEST_CASE("finish sorts by time, keeps the order of equal times, and starts anew") {
  const FrameKey one[] = {leaf(1)};
  const FrameKey two[] = {leaf(2)};
  ChunkBuilder builder(100);
  const uint32_t thread = builder.thread(1, 1, 0);
  builder.add_sample(300, thread, one);
  builder.add_sample(200, thread, one);
  builder.add_sample(300, thread, two);
  builder.add_sample(50, thread, one);  // late: belongs to the chunk before
  const RawChunk first = builder.finish(250);
  CHECK(first.begin_ns == 100);
  CHECK(first.end_ns == 300);
  REQUIRE(first.samples.size() == 4);
  CHECK(first.samples[0].time_ns == 100);
  CHECK(first.samples[1].time_ns == 200);
  CHECK(stack_of(first, first.samples[3].stack)[0] == leaf(2));

  CHECK(builder.thread(9, 9, 0) == 0);
  builder.add_sample(400, 0, two);
  const RawChunk second = builder.finish(500);
  CHECK(second.samples.size() == 1);
  CHECK(second.begin_ns == 250);
  CHECK(second.frames == std::vector<FrameKey>{leaf(2)});
  CHECK(stack_of(second, second.samples[0].stack) == std::vector<FrameKey>{leaf(2)});
}
