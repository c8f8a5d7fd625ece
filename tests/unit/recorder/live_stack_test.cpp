// Stacks deeper than their copies: what is asked of the process, and when nothing is.
#include "recorder/live_stack.h"

#include "base/time_units.h"
#include "support/catch2.h"

#include <algorithm>
#include <cstring>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

constexpr uint64_t kStackBegin = 0x7000'0000;
constexpr size_t kFrames = 20;
constexpr uint64_t kCopyEnd = kStackBegin + 0x200;

uint64_t slot_of(size_t frame) { return kStackBegin + 16 * frame; }

// A process whose stack ends at `end`, with the return addresses of kFrames frames in the copy.
struct FakeProcess {
  explicit FakeProcess(uint64_t end) : memory(end - kStackBegin) {
    for (size_t i = kCopyEnd - kStackBegin; i < memory.size(); ++i) memory[i] = std::byte(i % 251);
    for (size_t frame = 0; frame < kFrames; ++frame) {
      put_word(slot_of(frame) - kStackBegin, frame);
      steps.push_back({.return_address = {slot_of(frame), 0x401000 + frame}});
    }
    steps.push_back({});  // the last frame's, whose word was not copied
  }

  ReadMemory reader() {
    return [this](const MemoryRequest&, std::span<os::MemoryRange> ranges) {
      for (os::MemoryRange& range : ranges) {
        read(range);
        bytes_read += range.got_bytes;
      }
      return ++now_ns;
    };
  }
  void read(os::MemoryRange& range) const {
    const uint64_t offset = range.address - kStackBegin;
    if (offset >= memory.size()) return;
    range.got_bytes = std::min<size_t>(range.out.size(), memory.size() - offset);
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(offset), range.got_bytes,
                range.out.begin());
  }

  CutCopy copy_at(uint64_t time_ns) const {
    return {{42, 43}, time_ns, {kCopyEnd}, kCopyEnd - kStackBegin};
  }
  void put_word(size_t offset, size_t frame) {
    const uint64_t return_address = 0x401000 + frame;
    std::memcpy(memory.data() + offset, &return_address, sizeof(return_address));
  }
  void change(size_t frame) { memory[slot_of(frame) - kStackBegin] ^= std::byte{1}; }

  std::vector<std::byte> memory;
  std::vector<unwind::WalkStep> steps;
  uint64_t now_ns = 0;
  uint64_t bytes_read = 0;
};

// The first word that was not read yet.
RuntimeAddress end_of(const LiveStack& stack) {
  return {stack.pieces().empty() ? kCopyEnd : stack.pieces().back().end()};
}

}  // namespace

TEST_CASE("What is near is read on to, four times as much each time, up to the stack's end") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
  CHECK(stack.pieces().empty());
  for (const size_t bytes : {size_t{65'536}, size_t{262'144}, size_t{300'000 - 0x200}}) {
    INFO(bytes);
    REQUIRE(stack.grow(end_of(stack)));
    REQUIRE(stack.pieces().size() == 1);
    CHECK(stack.pieces()[0].begin.value == kCopyEnd);
    CHECK(stack.pieces()[0].bytes.size() == bytes);
  }
  CHECK(std::ranges::equal(stack.pieces()[0].bytes, std::span(process.memory).subspan(0x200)));
  CHECK(stack.read_time_ns() == 3);
  CHECK_FALSE(stack.grow(end_of(stack)));
  CHECK(stack.pieces().size() == 1);
}

TEST_CASE("What lies between far words is not read") {
  FakeProcess process(kStackBegin + 3'000'000);
  LiveStack stack(process.reader());
  REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
  REQUIRE(stack.grow({kCopyEnd + 8}));
  REQUIRE(stack.grow({kStackBegin + 1'000'008}));
  REQUIRE(stack.grow({kStackBegin + 2'000'000}));
  REQUIRE(stack.pieces().size() == 3);
  // From the page before on: registers are saved below the return address.
  CHECK(stack.pieces()[1].begin.value == ((kStackBegin + 1'000'008) & ~uint64_t{4095}) - 4096);
  size_t bytes = 0;
  for (const auto& piece : stack.pieces()) {
    const auto in_process = std::span(process.memory).subspan(piece.begin.value - kStackBegin);
    CHECK(std::ranges::equal(piece.bytes, in_process.first(piece.bytes.size())));
    bytes += piece.bytes.size();
  }
  CHECK(bytes == 3 * 65'536);
  CHECK_FALSE(stack.grow({kStackBegin + 4'000'000}));  // beyond the stack's end
  CHECK(stack.pieces().size() == 3);
}

TEST_CASE("There are no more pieces than a walk can be made again for") {
  FakeProcess process(kStackBegin + 20'000'000);
  LiveStack stack(process.reader());
  REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
  size_t pieces = 0;
  while (stack.grow({kStackBegin + 200'000 * (pieces + 1)})) ++pieces;
  CHECK(pieces == 8);
}

TEST_CASE("A stack stands as long as the last return addresses of the copy do") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  const auto still_stands = [&] {
    stack.end_batch();
    REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
    return stack.still_stands();
  };
  CHECK(still_stands());
  const size_t first_that_counts = kFrames - unwind::kFramesInCommon;
  process.change(first_that_counts - 1);
  CHECK(still_stands());
  for (size_t frame = first_that_counts; frame < kFrames; ++frame) {
    INFO(frame);
    process.change(frame);
    CHECK_FALSE(still_stands());
    process.change(frame);
  }
  CHECK(still_stands());
}

TEST_CASE("Reading on looks at the last return addresses in the same turn, behind the piece") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  const bool is_changed = GENERATE(false, true);
  REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
  if (is_changed) process.change(kFrames - 1);
  REQUIRE(stack.grow({kCopyEnd}));
  process.change(kFrames - 1);  // later, which says nothing of the piece
  CHECK(stack.still_stands() == !is_changed);
  CHECK(stack.may_stand() == !is_changed);
  CHECK(process.now_ns == 1);
  REQUIRE(stack.grow(end_of(stack)));
  CHECK(stack.still_stands() == is_changed);
  CHECK(process.now_ns == 2);
}

TEST_CASE("Return addresses far from each other, as on two stacks, are looked at as well") {
  constexpr size_t kMoved = 15;  // of the frames that are compared, with others on either side
  constexpr uint64_t kElsewhere = kStackBegin + 0x20000;
  for (const bool is_changed : {false, true}) {
    FakeProcess process(kStackBegin + 0x40000);
    unwind::SeenWord& word = process.steps[kMoved].return_address;
    word.address = kElsewhere;
    std::memcpy(process.memory.data() + 0x20000, &word.value, sizeof(word.value));
    process.change(kMoved);  // where it was
    if (is_changed) process.memory[0x20000] ^= std::byte{1};
    LiveStack stack(process.reader());
    REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
    CHECK(stack.still_stands() == !is_changed);
  }
}

TEST_CASE("A stack may stand as long as the last return addresses in the outer half do") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  const auto may_stand = [&] {
    stack.end_batch();
    REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
    return stack.may_stand();
  };
  CHECK(may_stand());
  for (const size_t from_end : {1, 4, 5}) {
    INFO(from_end);
    process.change(kFrames - from_end);
    CHECK(may_stand() == (from_end == 5));
    process.change(kFrames - from_end);
  }
  const size_t first_outer = (kCopyEnd - kStackBegin) / 2 / 16;
  process.steps.erase(process.steps.begin() + first_outer, process.steps.end() - 1);
  process.change(first_outer - 1);  // in the inner half, of a large frame
  CHECK(may_stand());
}

TEST_CASE("What a recursion repeats does not show that a stack still stands") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  for (auto& step : process.steps) step.return_address.value = 0x401000;
  REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
  CHECK_FALSE(stack.still_stands());
}

TEST_CASE("With fewer frames in the copy nothing shows that the stack still stands") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  process.steps.erase(process.steps.begin(), process.steps.end() - unwind::kFramesInCommon);
  REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
  CHECK_FALSE(stack.still_stands());
  process.steps.clear();  // cut in the leaf's frame
  REQUIRE(stack.begin(process.copy_at(kNsPerSecond), process.steps));
  CHECK_FALSE(stack.still_stands());
}

TEST_CASE("A process that cannot be read has no live stack") {
  const FakeProcess process(kStackBegin + 300'000);
  LiveStack ended([](const MemoryRequest&, std::span<os::MemoryRange>) { return uint64_t{1}; });
  REQUIRE(ended.begin(process.copy_at(kNsPerSecond), process.steps));
  CHECK_FALSE(ended.grow({kCopyEnd}));
  CHECK_FALSE(ended.still_stands());
  LiveStack none(nullptr);
  CHECK_FALSE(none.begin(process.copy_at(kNsPerSecond), process.steps));
}

TEST_CASE("No stack is read beyond the usual limit of a stack, and none beyond a second's share") {
  FakeProcess process(kStackBegin + 20'000'000);
  LiveStack stack(process.reader());
  const auto read_all = [&](uint64_t time_ns) {
    stack.end_batch();
    if (!stack.begin(process.copy_at(time_ns), process.steps)) return size_t{0};
    while (stack.grow(end_of(stack))) continue;
    return stack.pieces().empty() ? 0 : stack.pieces()[0].bytes.size();
  };
  CHECK(read_all(kNsPerSecond) == kMaxLiveStack_bytes);
  size_t whole = 0;
  for (int i = 0; i < 100; ++i) whole += read_all(kNsPerSecond) == kMaxLiveStack_bytes;
  CHECK(whole == 63);  // 512 MiB in all
  CHECK(read_all(2 * kNsPerSecond) == kMaxLiveStack_bytes);
  stack.charge_walk(2'000'000);  // 100 ms of walking
  CHECK(read_all(2 * kNsPerSecond) == 0);
  CHECK(read_all(3 * kNsPerSecond) == kMaxLiveStack_bytes);
}

TEST_CASE("One reading serves a thread's samples until the batch ends, and no other thread's") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  const CutCopy copy = process.copy_at(kNsPerSecond);
  const auto bytes_read = [&](const CutCopy& of) {
    const uint64_t before = process.bytes_read;
    REQUIRE(stack.begin(of, process.steps));
    REQUIRE(stack.grow({of.end}));
    return process.bytes_read - before;
  };
  CHECK(bytes_read(copy) > 65'536);
  CHECK(bytes_read(copy) == 0);
  CHECK(stack.still_stands());
  process.change(kFrames - 1);
  REQUIRE(stack.begin(copy, process.steps));
  CHECK(stack.still_stands());  // then
  CutCopy others = copy;
  others.thread.tid += 1;
  CHECK(bytes_read(others) > 65'536);
  CHECK_FALSE(stack.still_stands());
  CHECK(bytes_read(copy) == 0);
  CHECK(stack.still_stands());
  stack.end_batch();
  CHECK(bytes_read(copy) > 65'536);
  CHECK_FALSE(stack.still_stands());
}

TEST_CASE("What was read for one stack serves a shallower one, if that stood before and behind") {
  FakeProcess process(kStackBegin + 300'000);
  for (size_t frame = 0; frame < kFrames; ++frame) process.put_word(100'000 + 16 * frame, frame);
  std::vector<unwind::WalkStep> shallower = process.steps;
  for (size_t i = 0; i < kFrames; ++i) shallower[i].return_address.address += 100'000;
  const CutCopy deep = process.copy_at(kNsPerSecond);
  const CutCopy shallow{deep.thread, kNsPerSecond, {kCopyEnd + 100'000}, deep.size_bytes};
  LiveStack stack(process.reader());
  const auto is_believed_of_shallow = [&](bool was_same, bool is_same) {
    stack.end_batch();
    process.put_word(100'000 + 16 * (kFrames - 1), was_same ? kFrames - 1 : 0);
    REQUIRE(stack.begin(deep, process.steps));
    while (stack.grow(end_of(stack))) continue;
    const uint64_t before = process.bytes_read;
    process.put_word(100'000 + 16 * (kFrames - 1), is_same ? kFrames - 1 : 0);
    REQUIRE(stack.begin(shallow, shallower));
    REQUIRE(stack.grow(shallow.end));
    const bool stands = stack.still_stands();
    CHECK(process.bytes_read - before < 4096);
    return stands;
  };
  CHECK(is_believed_of_shallow(true, true));
  CHECK_FALSE(is_believed_of_shallow(false, true));
  CHECK_FALSE(is_believed_of_shallow(true, false));
}

TEST_CASE("Beyond what was read for another sample, a stack is read anew") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  const CutCopy copy = process.copy_at(kNsPerSecond);
  REQUIRE(stack.begin(copy, process.steps));
  REQUIRE(stack.grow({kCopyEnd}));
  process.memory[kCopyEnd - kStackBegin] ^= std::byte{1};
  REQUIRE(stack.begin(copy, process.steps));
  REQUIRE(stack.grow({kCopyEnd}));
  REQUIRE(stack.grow(end_of(stack)));  // nothing is left of what was read
  CHECK(stack.pieces().empty());
  REQUIRE(stack.grow({kCopyEnd}));
  CHECK(stack.pieces()[0].bytes[0] == process.memory[kCopyEnd - kStackBegin]);
  REQUIRE(stack.grow(end_of(stack)));
  CHECK(stack.pieces()[0].bytes.size() == 4 * 65'536);
}

TEST_CASE("What was read for one stack does not serve a deeper one") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  const CutCopy copy = process.copy_at(kNsPerSecond);
  REQUIRE(stack.begin(copy, process.steps));
  REQUIRE(stack.grow({kCopyEnd}));
  CutCopy deeper = copy;
  deeper.end.value -= 16;
  process.steps.erase(process.steps.end() - 2);
  REQUIRE(stack.begin(deeper, process.steps));
  CHECK(stack.pieces().empty());
  REQUIRE(stack.grow(deeper.end));
  CHECK(stack.pieces().front().begin.value == deeper.end.value);
}

TEST_CASE("A sample that another one's deep reading does not serve has as much room as that had") {
  constexpr uint64_t kOutward = 10'000'000;  // the recursion has returned
  FakeProcess process(kStackBegin + 20'000'000);
  LiveStack stack(process.reader());
  const CutCopy deep = process.copy_at(kNsPerSecond);
  REQUIRE(stack.begin(deep, process.steps));
  while (stack.grow(end_of(stack))) continue;
  REQUIRE(stack.pieces().back().bytes.size() == kMaxLiveStack_bytes);
  const CutCopy later{deep.thread, kNsPerSecond + 1, {kCopyEnd + kOutward}, deep.size_bytes};
  for (unwind::WalkStep& step : process.steps) step.return_address.address += kOutward;
  REQUIRE(stack.begin(later, process.steps));
  CHECK(stack.pieces().empty());
  REQUIRE(stack.grow(later.end));
  CHECK(stack.pieces().front().begin.value == later.end.value);
  while (stack.grow(end_of(stack))) continue;
  CHECK(stack.pieces().back().bytes.size() == kMaxLiveStack_bytes);
}

TEST_CASE("What was read for a sample is not given up for one that there is no budget for") {
  FakeProcess process(kStackBegin + 20'000'000);
  LiveStack stack(process.reader());
  const CutCopy copy = process.copy_at(kNsPerSecond);
  REQUIRE(stack.begin(copy, process.steps));
  REQUIRE(stack.grow(end_of(stack)));
  stack.charge_walk(2'000'000);
  CutCopy deeper = copy;
  deeper.end.value -= 16;
  const std::span<const unwind::WalkStep> steps = process.steps;
  REQUIRE(stack.begin(deeper, steps.first(steps.size() - 1)));
  CHECK_FALSE(stack.grow(deeper.end));
  REQUIRE(stack.begin(copy, steps));
  CHECK(stack.pieces().size() == 1);
}

TEST_CASE("Readings of many threads hold no more than two of the largest") {
  StackReadings readings;
  const ReadMemory all = [](const MemoryRequest&, std::span<os::MemoryRange> ranges) {
    for (os::MemoryRange& range : ranges) range.got_bytes = range.out.size();
    return uint64_t{1};
  };
  constexpr size_t kSmall_bytes = 65'536;
  for (const bool is_large : {false, true}) {
    const StackRange piece{{is_large ? kStackBegin + kSmall_bytes : kStackBegin},
                           is_large ? kMaxLiveStack_bytes - kSmall_bytes : kSmall_bytes};
    for (uint32_t tid = 1; tid <= 16; ++tid) {
      CHECK(readings.of({42, tid}).read_piece(all, {42, 1}, piece, {}) == piece.size_bytes);
      CHECK(readings.held_bytes() <= 2 * kMaxLiveStack_bytes);
    }
    if (!is_large) CHECK(readings.held_bytes() == 16 * kSmall_bytes);
  }
}

TEST_CASE("Readings that have to make room for each other hand it on") {
  StackReadings readings;
  const std::byte* room = nullptr;
  const ReadMemory all = [&](const MemoryRequest&, std::span<os::MemoryRange> ranges) {
    room = ranges[0].out.data();
    ranges[0].got_bytes = ranges[0].out.size();
    return uint64_t{1};
  };
  const auto room_of = [&](uint32_t tid) {
    const StackRange piece{{kStackBegin}, kMaxLiveStack_bytes};
    readings.of({42, tid}).read_piece(all, {42, 1}, piece, {});
    return room;
  };
  const std::byte* const first = room_of(1);
  const std::byte* const second = room_of(2);
  for (uint32_t tid = 3; tid < 10; ++tid) {
    const std::byte* const taken = room_of(tid);
    CHECK((taken == first || taken == second));
  }
}

TEST_CASE("What is read once is walked for as many samples as a second allows") {
  FakeProcess process(kStackBegin + 300'000);
  LiveStack stack(process.reader());
  const CutCopy copy = process.copy_at(kNsPerSecond);
  REQUIRE(stack.begin(copy, process.steps));
  REQUIRE(stack.grow({kCopyEnd}));
  REQUIRE(stack.begin(copy, process.steps));
  REQUIRE(stack.grow({kCopyEnd}));
  stack.charge_walk(2'000'000);
  REQUIRE(stack.begin(copy, process.steps));
  CHECK_FALSE(stack.grow({kCopyEnd}));
  CHECK(stack.goes_on());
}
