// The walk with what is remembered of the thread's last one: faster, never other.
#include "unwind/walk_memory.h"

#include "support/catch2.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

using Pcs = std::vector<uint64_t>;

// main (root) <- outer <- middle <- leaf, at 0x7000 upward; `leaf` may be any of two functions.
struct RememberingWorld : World {
  RememberingWorld() {
    cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 16));
    cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRsp, 24), kRbp, -16));
    cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 16));
    cfi.add(0x4000, 0x4100, root_row());
  }

  std::vector<uint64_t> words() const {
    return {1, at(0x2050), 2, 0xfb, at(0x3050), 3, at(0x4050), 4};
  }
  Walk walk_from(uint64_t pc, const std::vector<uint64_t>& words, uint64_t fp = 0) {
    return unwinder.walk(registers_at(at(pc), 0x7000, fp), FakeStack(0x7000, words), modules,
                         &memory);
  }
  // What a walk without memory finds. Walks are borrowed, so this copies.
  Pcs truth(uint64_t pc, const std::vector<uint64_t>& words) {
    Unwinder other(Arch::X86_64);
    return pcs(other.walk(registers_at(at(pc), 0x7000, 0), FakeStack(0x7000, words), modules));
  }
  uint64_t remembered() const { return unwinder.stats().remembered_frames; }

  WalkMemory memory;
};

const Pcs kWholeWalk{0x1010, 0x2050, 0x3050, 0x4050};

}  // namespace

TEST_CASE("the frames outside of one that has not moved are remembered") {
  RememberingWorld w;
  CHECK(pcs(w.walk_from(0x1010, w.words())) == kWholeWalk);
  CHECK(w.remembered() == 0);
  const Walk again = w.walk_from(0x1020, w.words());
  CHECK(pcs(again) == Pcs{0x1020, 0x2050, 0x3050, 0x4050});
  CHECK(again.is_complete());
  CHECK(origins(again) ==
        std::vector{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::Cfi, FrameOrigin::Cfi});
  CHECK(w.remembered() == 2);  // beyond the frame that is found to be the same
}

TEST_CASE("a call from another place is not taken for the remembered one") {
  RememberingWorld w;
  w.walk_from(0x1010, w.words());
  auto words = w.words();
  words[1] = at(0x2060);
  CHECK(pcs(w.walk_from(0x1010, words)) == Pcs{0x1010, 0x2060, 0x3050, 0x4050});
  words[1] = at(0x2050);
  words[4] = at(0x3060);
  CHECK(pcs(w.walk_from(0x1010, words)) == Pcs{0x1010, 0x2050, 0x3060, 0x4050});
  words[6] = at(0x4060);
  CHECK(pcs(w.walk_from(0x1010, words)) == Pcs{0x1010, 0x2050, 0x3060, 0x4060});
}

TEST_CASE("a frame pointer that was saved another time counts, too") {
  RememberingWorld w;
  w.cfi.add(0x3100, 0x3200, row_with_cfa(kRbp, 16));  // the frame pointer leads on from here
  auto words = w.words();
  words[4] = at(0x3150);
  words[3] = 0x7028;
  CHECK(pcs(w.walk_from(0x1010, words)) == Pcs{0x1010, 0x2050, 0x3150, 0x4050});
  words.push_back(at(0x4060));
  words[3] = 0x7030;
  CHECK(pcs(w.walk_from(0x1010, words)) == w.truth(0x1010, words));
}

TEST_CASE("a map that changed makes everything forgotten") {
  RememberingWorld w;
  w.walk_from(0x1010, w.words());
  w.modules.insert({{kBias + 0x3000}, {kBias + 0x4000}, {}, kNoImage, nullptr});
  const Walk walk = w.walk_from(0x1010, w.words());
  CHECK_FALSE(walk.is_complete());
  CHECK(w.remembered() == 0);
}

TEST_CASE("a copied map is the same until either changes") {
  RememberingWorld w;
  w.walk_from(0x1010, w.words());
  const ModuleMap forked = w.modules;
  CHECK(forked.version() == w.modules.version());
  w.modules.insert({{0x10}, {0x20}, {}, kNoImage, nullptr});
  CHECK(forked.version() != w.modules.version());
  ModuleMap other = forked;
  other.clear();
  CHECK(other.version() != forked.version());
  CHECK(other.version() != w.modules.version());
}

TEST_CASE("words that were not copied this time are not believed") {
  RememberingWorld w;
  w.walk_from(0x1010, w.words());
  auto words = w.words();
  words.resize(6);
  const Walk walk = w.walk_from(0x1010, words);
  CHECK(end_of(walk) == "stack_truncated");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x3050});
  CHECK(pcs(w.walk_from(0x1010, w.words())) == kWholeWalk);
  CHECK(w.remembered() == 2);  // the walk that was cut took nothing away
}

TEST_CASE("only whole walks are remembered") {
  RememberingWorld w;
  auto words = w.words();
  words.resize(6);
  w.walk_from(0x1010, words);
  w.walk_from(0x1010, words);
  CHECK(w.remembered() == 0);
}

TEST_CASE("beyond a frame that takes all registers nothing is remembered") {
  RememberingWorld w;
  unwind::Row whole_row = row_with_cfa(kRsp, 16);
  whole_row.rules[kRsp] = {.kind = RuleKind::ValCfaOffset, .offset = 0};  // fits no compact rule
  w.cfi.add(0x5000, 0x5100, whole_row);
  w.walk_from(0x5010, w.words());
  CHECK(pcs(w.walk_from(0x5010, w.words())) == Pcs{0x5010, 0x2050, 0x3050, 0x4050});
  CHECK(w.remembered() == 2);
  auto words = w.words();
  words[4] = at(0x5050);
  words.insert(words.begin() + 5, {0, at(0x3050)});
  CHECK(pcs(w.walk_from(0x1010, words)) == w.truth(0x1010, words));
  CHECK(pcs(w.walk_from(0x1010, words)) == w.truth(0x1010, words));
}

TEST_CASE("a deep stack is remembered as a whole") {
  RememberingWorld w;
  std::vector<uint64_t> words;
  for (int level = 0; level < 1000; ++level) words.insert(words.end(), {7, at(0x1050)});
  words.insert(words.end(), {7, at(0x4050)});
  const auto walk = [&] { return pcs(w.walk_from(0x1010, words)); };
  const Pcs first = walk();
  REQUIRE(first.size() == 1002);
  CHECK(walk() == first);
  CHECK(w.remembered() == first.size() - 2);  // all but the leaf and the frame at which they met
}

TEST_CASE("each thread has a memory of its own, and threads of one place take turns") {
  WalkMemories memories;
  memories.of(1, 1).use_map(5);
  memories.of(1, 1).learn({}, {WalkStep{}});
  CHECK(memories.of(1, 2).steps().empty());
  CHECK(memories.of(1, 1).steps().size() == 1);
  CHECK(memories.of(2, 1).steps().empty());
  CHECK(memories.of(1, 1).steps().empty());
}

namespace {

// Of a stack as RememberingWorld's with `levels` more calls at its inner end, what a copy has of
// it: all but the return address to the root.
struct CutWorld : RememberingWorld {
  explicit CutWorld(size_t levels) {
    for (size_t level = 0; level < levels; ++level) cut.insert(cut.end(), {7, at(0x1020 + level)});
    for (const uint64_t word : words()) cut.push_back(word);
    whole = cut;
    cut.resize(cut.size() - 3);
  }

  Walk join(const std::vector<uint64_t>& copy, uint64_t sp = 0x7000, uint64_t fp = 0) {
    return unwinder.join(registers_at(at(0x1020), sp, fp), FakeStack(sp, copy), modules, memory);
  }
  // The outer part, one frame, is read from a process whose stack has `live` words.
  Walk walk_live(const std::vector<uint64_t>& live) {
    const Bytes copied = std::as_bytes(std::span(cut));
    const StackPiece now{{0x7000 + copied.size()},
                         std::as_bytes(std::span(live)).subspan(copied.size())};
    return unwinder.walk_live(registers_at(at(0x1020), 0x7000, 0),
                              {{0x7000}, copied, StackSnapshot::Behind::More, std::span(&now, 1)},
                              modules, memory, walk_copy().frames_walked());
  }
  Walk walk_copy() { return walk_from(0x1020, cut); }
  // The place of a word whose frame is the `frames`th from the end of the copy.
  static size_t word_of_frame_from_end(const std::vector<uint64_t>& copy, size_t frames) {
    return copy.size() - 5 - 2 * (frames - 2) + 1;
  }

  std::vector<uint64_t> whole;
  std::vector<uint64_t> cut;
};

}  // namespace

TEST_CASE("a walk that its copy cut is joined to the last whole one through the same frames") {
  CutWorld w(kFramesInCommon - 2);
  const Pcs truth = pcs(w.walk_from(0x1010, w.whole));
  CHECK(end_of(w.walk_from(0x1020, w.cut)) == "stack_truncated");
  const Walk joined = w.join(w.cut);
  CHECK(joined.is_complete());
  REQUIRE(joined.frames.size() == truth.size());
  CHECK(std::equal(truth.begin() + 1, truth.end(), pcs(joined).begin() + 1));
  for (const WalkedFrame& frame : joined.frames) {
    CHECK(frame.is_joined == (&frame == &joined.frames.back()));
  }
}

TEST_CASE("no walk is joined through too few frames, or others, or without a last whole one") {
  CutWorld few(kFramesInCommon - 3);
  few.walk_from(0x1010, few.whole);
  CHECK(end_of(few.join(few.cut)) == "stack_truncated");

  CutWorld w(kFramesInCommon);
  CHECK_FALSE(w.join(w.cut).is_complete());
  w.walk_from(0x1010, w.whole);
  CHECK_FALSE(w.join(w.cut, 0x7008).is_complete());
  auto other = w.cut;
  other.back() = at(0x3051);
  CHECK_FALSE(w.join(other).is_complete());
  other = w.cut;
  other[other.size() - 2] = 0xfc;  // the saved frame pointer
  CHECK_FALSE(w.join(other).is_complete());
  CHECK(w.join(w.cut).frames.back().is_joined);
}

TEST_CASE("of the frames that a walk is joined through each one counts") {
  CutWorld w(kFramesInCommon);
  w.walk_from(0x1010, w.whole);
  const auto with_other_frame = [&](size_t from_end) {
    auto other = w.cut;
    other[CutWorld::word_of_frame_from_end(other, from_end)] = at(0x1060);
    return w.join(other);
  };
  CHECK_FALSE(with_other_frame(kFramesInCommon).is_complete());
  CHECK(with_other_frame(kFramesInCommon + 1).is_complete());
}

TEST_CASE("what was joined is not learned: the next join is to the last whole walk, too") {
  CutWorld w(kFramesInCommon);
  w.walk_from(0x1010, w.whole);
  w.cut[1] = at(0x1060);
  CHECK(w.join(w.cut).is_complete());
  w.cut.resize(3);
  CHECK_FALSE(w.join(w.cut).is_complete());
}

TEST_CASE("what a recursion repeats shows nothing: each pc counts once") {
  CutWorld w(40);
  for (std::vector<uint64_t>* words : {&w.cut, &w.whole}) {
    for (size_t level = 0; level < 40; ++level) (*words)[2 * level + 1] = at(0x1050);
  }
  w.walk_from(0x1010, w.whole);
  CHECK(end_of(w.join(w.cut)) == "stack_truncated");
}

TEST_CASE("a fingerprint tells frames apart by what they are, where, and how many") {
  std::vector<WalkStep> steps(2);
  steps[0].state = {.pc = 0x1010, .sp = 0x7100, .fp = 0x7200};
  steps[1].state = {.pc = 0x1020, .sp = 0x7000, .fp = 0x7200};
  const uint64_t fingerprint = fingerprint_of(steps);
  CHECK(fingerprint_of(steps) == fingerprint);
  CHECK(fingerprint_of(std::span(steps).first(1)) != fingerprint);
  for (const auto what : {&FrameState::pc, &FrameState::sp, &FrameState::fp}) {
    std::vector<WalkStep> other = steps;
    other[0].state.*what += 8;
    CHECK(fingerprint_of(other) != fingerprint);
  }
}

TEST_CASE("a live walk's outer frames are the memory's, or others") {
  CutWorld w(1);
  CHECK(w.walk_live(w.whole).is_complete());
  CHECK_FALSE(w.unwinder.ends_as(w.memory, 1));  // it has learned nothing
  w.walk_from(0x1010, w.whole);
  CHECK(w.walk_live(w.whole).is_complete());
  CHECK(w.unwinder.ends_as(w.memory, 1));
  CHECK(w.unwinder.ends_as(w.memory, 3));
  CHECK_FALSE(w.unwinder.ends_as(w.memory, 0));
  CHECK_FALSE(w.unwinder.ends_as(w.memory, 5));  // the leaf has no step
  auto other = w.whole;
  other[other.size() - 2] = at(0x4060);
  CHECK(w.walk_live(other).is_complete());
  CHECK_FALSE(w.unwinder.ends_as(w.memory, 1));
}

TEST_CASE("a live walk's outer frames are not known where one of them took a whole row") {
  CutWorld w(1);
  Row row = row_with_cfa(kRsp, 16);
  row.rules[kRsp] = {.kind = RuleKind::ValCfaOffset, .offset = 0};  // fits no compact rule
  w.cfi.add(0x6000, 0x6100, row);
  w.cut.back() = at(0x6050);
  w.whole[w.cut.size() - 1] = at(0x6050);
  w.walk_from(0x1010, w.whole);
  w.walk_from(0x1010, w.whole);
  CHECK(w.walk_live(w.whole).is_complete());
  CHECK(w.unwinder.ends_as(w.memory, 1));        // the root alone, outside of the whole row
  CHECK_FALSE(w.unwinder.ends_as(w.memory, 2));  // the frame that took it
}

TEST_CASE("the frames of a live walk that were not copied are marked") {
  CutWorld w(1);
  const Walk walk = w.walk_live(w.whole);
  for (const WalkedFrame& frame : walk.frames) {
    CHECK(frame.is_live == (&frame == &walk.frames.back()));
  }
}

TEST_CASE("data in a register that outer frames save is no other frame") {
  CutWorld w(1);
  w.walk_from(0x1010, w.whole);
  w.cut[w.cut.size() - 2] = 0xfc;  // a saved frame pointer that no rule needs
  CHECK(w.walk_live(w.whole).is_complete());
  CHECK(w.unwinder.ends_as(w.memory, 1));
}

TEST_CASE("a live walk is learned when it is asked for, into its own memory or another one") {
  CutWorld w(1);
  const Pcs truth = pcs(w.walk_live(w.whole));
  w.unwinder.learn(w.memory, w.modules);
  CHECK(w.memory.steps().size() == truth.size() - 1);
  w.walk_live(w.whole);
  WalkMemory other;
  w.unwinder.learn(other, w.modules);
  REQUIRE(other.steps().size() == truth.size() - 1);
  for (size_t i = 0; i < other.steps().size(); ++i) {
    CHECK(other.steps()[i].state == w.memory.steps()[i].state);
  }
}
