// When the callers of C code that Go calls are believed.
#include "recorder/left_stacks.h"

#include "support/catch2.h"
#include "unit/unwind/left_stack_fixture.h"

#include <algorithm>
#include <utility>

using namespace sentry_prof;
using namespace sentry_prof::recorder;
using namespace sentry_prof::test;

namespace {

constexpr uint32_t kGoPid = 7;
using Pcs = std::vector<uint64_t>;
const Pcs kCopiedFrames{kLeafInC, kInCalledByGo, kInChanger};
const Pcs kWholeStackOfGo{kLeafInC, kInCalledByGo, kInChanger, kCallsChanger, kCallsC, kGoRoot};

struct Goroutine : LeftStackWorld {
  Goroutine() {
    read = [this](const MemoryRequest&, std::span<os::MemoryRange> ranges) {
      ++reads;
      const Bytes bytes = std::as_bytes(std::span(words));
      ranges[0].got_bytes = std::min(ranges[0].out.size(), bytes.size());
      std::copy_n(bytes.begin(), ranges[0].got_bytes, ranges[0].out.begin());
      return now_ns;
    };
    stacks.emplace(unwinder, read);
  }

  // A sample, which is looked at a moment later.
  Walk sample() { return sample_of(now_ns += 10); }
  Walk sample_of(uint64_t time_ns) {
    now_ns = std::max(now_ns, time_ns + 1);
    const WholeWalk result = stacks->complete(walk_of_sample(), kGoPid, time_ns, modules);
    is_seen = result.seen_at.has_value();
    return result.walk;
  }
  void take(uint32_t samples) {
    for (uint32_t i = 0; i < samples; ++i) sample();
  }
  // The kernel's chain had these callers.
  void learn(uint64_t caller) {
    std::vector<WalkedFrame> frames;
    const Walk walk = walk_of_sample();
    frames.assign(walk.frames.begin(), walk.frames.end());
    for (const uint64_t pc : {caller, kGoRoot}) frames.push_back({.image = kProgram, .pc = pc});
    Walk whole = walk;
    whole.frames = frames;
    stacks->learn(whole, walk.frames.size(), kGoPid, now_ns += 10, modules);
  }
  LeftPlace place() {
    const Walk walk = walk_of_sample();
    return {kGoPid, modules.version(),
            left_stack_of(walk.frames, walk.left_frame_pointer, modules).value()};
  }

  ReadMemory read;
  int reads = 0;
  uint64_t now_ns = 1000;
  bool is_seen = false;  // after the last sample
  std::optional<LeftStacks> stacks;
};

}  // namespace

TEST_CASE("callers are believed when they have been the same eight times") {
  Goroutine g;
  for (uint32_t i = 1; i < kTimesAlike; ++i) {
    const Walk walk = g.sample();
    CHECK(pcs(walk) == kCopiedFrames);
    CHECK(end_of(walk) == "other_stack");
  }
  const Walk walk = g.sample();
  CHECK(pcs(walk) == kWholeStackOfGo);
  CHECK(end_of(walk) == "root");
  CHECK_FALSE(walk.frames[2].is_live);
  CHECK(walk.frames[3].is_live);
  CHECK(g.stacks->believed_at(g.place(), 0).size() == 3);  // earlier samples, too
}

TEST_CASE("a stack that was read after a sample is not read again for it") {
  Goroutine g;
  g.now_ns = 2000;
  for (const uint64_t time_ns : {1000u, 1500u, 1999u}) g.sample_of(time_ns);
  CHECK(g.reads == 1);
  g.sample_of(2001);
  CHECK(g.reads == 2);
}

TEST_CASE("callers that change have to be the same more often, and then count from there on") {
  Goroutine g;
  g.take(kTimesAlike);
  g.goroutine_calls(kCallsCElsewhere);
  CHECK(pcs(g.sample()) == kCopiedFrames);
  const uint64_t changed_ns = g.now_ns;
  g.take(kTimesAlikeAgain - 2);
  CHECK(g.stacks->believed_at(g.place(), g.now_ns).empty());
  g.take(1);
  CHECK(g.stacks->believed_at(g.place(), g.now_ns).size() == 3);
  CHECK(g.stacks->believed_at(g.place(), changed_ns - 1).empty());
}

TEST_CASE("a sample whose goroutine has gone on has no callers, whatever others have") {
  Goroutine g;
  g.take(kTimesAlike);
  CHECK(g.is_seen);
  const auto words = std::exchange(g.words, std::vector<uint64_t>(g.words.size()));
  CHECK(pcs(g.sample()) == kCopiedFrames);
  CHECK_FALSE(g.is_seen);
  const uint64_t time_ns = g.now_ns - 1;
  g.words = words;
  CHECK(pcs(g.sample()) == kWholeStackOfGo);
  g.words.clear();
  g.sample();
  CHECK(pcs(g.sample_of(time_ns)) == kCopiedFrames);
}

TEST_CASE("a look that finds another function called counts for neither, and the sample is whole") {
  Goroutine g;
  g.take(kTimesAlike);
  g.goroutine_calls(kCallsCElsewhere, 0x1000);
  CHECK(pcs(g.sample()) == kWholeStackOfGo);
  CHECK(g.is_seen);
}

TEST_CASE("a new map takes what was seen, but not that callers changed") {
  Goroutine g;
  g.take(1);
  SECTION("they did not") {
    g.modules.insert(g.modules.modules().back());
    g.take(kTimesAlike - 1);
    CHECK(pcs(g.sample()) == kWholeStackOfGo);
  }
  SECTION("they did") {
    g.learn(kCallsCElsewhere);
    g.modules.insert(g.modules.modules().back());
    g.take(kTimesAlikeAgain - 1);
    CHECK(g.stacks->believed_at(g.place(), g.now_ns).empty());
    CHECK(pcs(g.sample()) == kWholeStackOfGo);
  }
}

TEST_CASE("callers that changed before the last look have changed by then") {
  Goroutine g;
  g.take(3);
  const uint64_t looked_ns = g.now_ns;
  g.now_ns -= 25;
  g.learn(kCallsCElsewhere);
  g.now_ns = looked_ns;
  g.goroutine_calls(kCallsCElsewhere);
  g.take(kTimesAlikeAgain);
  CHECK(g.stacks->believed_at(g.place(), looked_ns - 1).empty());
  CHECK_FALSE(g.stacks->believed_at(g.place(), looked_ns).empty());
}

TEST_CASE("what the kernel's chain has speaks against other callers, not for the same") {
  Goroutine g;
  SECTION("the same, but for the frame that it lacks") {
    g.learn(kCallsC);
    g.take(kTimesAlike - 1);
    g.learn(kCallsC);
    CHECK(pcs(g.sample()) == kWholeStackOfGo);
    g.learn(kCallsC);
    CHECK(pcs(g.sample()) == kWholeStackOfGo);
  }
  SECTION("others before any look") {
    g.learn(kCallsCElsewhere);
    g.take(kTimesAlikeAgain - 1);
    CHECK(g.stacks->believed_at(g.place(), g.now_ns).empty());
    CHECK(pcs(g.sample()) == kWholeStackOfGo);
  }
  SECTION("others later") {
    g.take(kTimesAlike);
    g.learn(kCallsCElsewhere);
    CHECK(pcs(g.sample()) == kCopiedFrames);
  }
}

TEST_CASE("what was seen holds for one process, one map and one C function") {
  Goroutine g;
  g.take(kTimesAlike);
  LeftPlace place = g.place();
  CHECK_FALSE(g.stacks->believed_at(place, g.now_ns).empty());
  SECTION("other process") { ++place.pid; }
  SECTION("other map") { ++place.map_version; }
  SECTION("other depth, or goroutine") { place.left.frame_pointer += 2048; }
  SECTION("other function") { ++place.left.callee.value; }
  CHECK(g.stacks->believed_at(place, g.now_ns).empty());
}

TEST_CASE("no more is looked at in a second than is allowed") {
  Goroutine g;
  g.take(kMaxLooksPerSecond + 5);
  CHECK(g.reads == static_cast<int>(kMaxLooksPerSecond));
  g.sample_of(g.now_ns + 2'000'000'000);
  CHECK(g.reads == static_cast<int>(kMaxLooksPerSecond) + 1);
}

TEST_CASE("where memory cannot be read, nothing is looked at or held") {
  Goroutine g;
  LeftStacks blind(g.unwinder, {});
  const WholeWalk result = blind.complete(g.walk_of_sample(), kGoPid, 10, g.modules);
  CHECK(pcs(result.walk) == kCopiedFrames);
  CHECK_FALSE(result.seen_at);
}

TEST_CASE("samples are held until they are taken, and no more of them than there is room for") {
  Goroutine g;
  const HeldSample sample{.time_ns = 5, .frames = std::vector<profile::FrameKey>(1024)};
  size_t held = 0;
  while (g.stacks->hold(sample)) ++held;
  CHECK(held > 100);
  CHECK(held * sample.frames.size() * sizeof(profile::FrameKey) <= kMaxHeld_bytes);
  CHECK(g.stacks->take_held().size() == held);
  CHECK(g.stacks->take_held().empty());
  CHECK(g.stacks->hold(sample));
}
