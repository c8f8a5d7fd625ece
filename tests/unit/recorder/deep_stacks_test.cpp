// Stacks deeper than their copies: live, joined with the last or the next whole walk, or cut.
#include "recording_fixture.h"
#include "support/catch2.h"

#include <string>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::recorder_test;

TEST_CASE("A stack deeper than its copy is completed from the process, and the summary knows") {
  RecordingFixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kNsPerSecond + 10);
  run.cut_sample(1 * kNsPerSecond + 20);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  const Profile& profile = run.sink.profiles.at(0);
  const auto stack = profile.stack(profile.samples[0].stack);
  REQUIRE(stack.size() == kCopiedRecords + 2);
  CHECK(profile.frames[stack.back()].instruction_addr == kCode + 0x200);
  CHECK(figures.samples_complete() == 2);
  CHECK(figures.samples_truncated() == 0);
  CHECK(figures.sample.samples_with_live_frames == 2);
  CHECK(figures.sample.live_frames == 2);
}

TEST_CASE("A stack whose outer part is gone by now keeps what its copy has") {
  RecordingFixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.change_copied_part();  // another call since
  run.cut_sample(1 * kNsPerSecond + 10);
  run.stack_goes_on_with({kStack + 8, kCode + 0x200});  // leads nowhere
  run.cut_sample(1 * kNsPerSecond + 20);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  const Profile& profile = run.sink.profiles.at(0);
  for (const Sample& sample : profile.samples) {
    CHECK(profile.stack(sample.stack).size() == kCopiedRecords + 1);
  }
  CHECK(figures.samples_truncated() == 2);
  CHECK(figures.sample.samples_with_live_frames == 0);
}

TEST_CASE("The outer part of a stack is believed, too, where it is that of the last whole one") {
  RecordingFixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kNsPerSecond + 10);
  run.change_inner_half();
  run.cut_sample(1 * kNsPerSecond + 20);
  run.cut_sample_in_large_frame(1 * kNsPerSecond + 30);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.samples_with_live_frames == 3);
  CHECK(figures.samples_complete() == 3);
}

TEST_CASE("What was copied beside the record completes a stack, whatever the process has by now") {
  RecordingFixture run;
  run.now_ns = 1 * kNsPerSecond + 15;
  run.stack_goes_on_with({kStack + 8, kCode + 0x200});  // leads nowhere
  run.cut_sample(1 * kNsPerSecond + 10);
  REQUIRE(run.followed.size() == 1);
  CHECK(run.followed[0] == std::pair<uint32_t, uint64_t>(kPid, 0));  // nothing is known of its end
  run.outer_words = {0, kCode + 0x300};
  run.cut_sample(1 * kNsPerSecond + 20);
  run.short_sample(1 * kNsPerSecond + 30);
  run.outer_words = {kStack + 16 * kCopiedRecords + 64};  // not enough
  run.cut_sample(1 * kNsPerSecond + 40);
  REQUIRE(run.followed.size() == 3);  // at the first whole one, and at the second cut one
  for (const size_t i : {1, 2}) CHECK(run.followed[i].second > kStack + 16 * kCopiedRecords);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.samples_with_outer_stacks == 2);
  CHECK(figures.sample.outer_stacks_missed == 1);         // before the first one nobody was told
  CHECK(figures.sample.samples_with_joined_frames == 2);  // the others, with these
  CHECK(figures.sample.samples_with_live_frames == 0);
  CHECK(figures.sample.cut_copies == 4);
  const Profile& profile = run.sink.profiles.at(0);
  const auto stack = profile.stack(profile.samples[1].stack);
  REQUIRE(stack.size() == kCopiedRecords + 2);
  CHECK(profile.frames[stack.back()].instruction_addr == kCode + 0x300);
}

TEST_CASE("A stack that is walked twice misses what was not copied once") {
  RecordingFixture run;
  run.opener.code = ErrorCode::Io;  // who would know whether there is a file does not answer
  MapEvent map;
  map.pid = map.tid = kPid;
  map.begin = {0x60000};
  map.size_bytes = kCode_bytes;
  map.path = "/lib/far.so";
  run.recording->on_event({1 * kNsPerSecond, map});
  run.reread = [](uint32_t pid) {
    target::ProcessSnapshot snapshot;
    snapshot.pid = pid;
    for (const auto& [begin, path] : std::initializer_list<std::pair<uint64_t, const char*>>{
             {kCode, "//anon"}, {0x60000, "/lib/far.so"}}) {
      target::MappingFacts mapping;
      mapping.pid = pid;
      mapping.begin = {begin};
      mapping.size_bytes = kCode_bytes;
      mapping.path = path;
      snapshot.mappings.push_back(mapping);
    }
    return snapshot;
  };
  run.copy.back() = 0x60100;
  run.cut_sample(1 * kNsPerSecond + 10);
  CHECK(run.rereads == 1);
  CHECK(run.followed.size() == 2);
  CHECK(run.finish(2 * kNsPerSecond).sample.outer_stacks_missed == 1);
}

TEST_CASE("A short copy ends at a page that was never touched, or where the stack ends") {
  RecordingFixture run;
  run.stack_goes_on_with({});
  run.short_sample(1 * kNsPerSecond + 10);
  run.stack_goes_on_with({0, kCode + 0x200});
  run.short_sample(1 * kNsPerSecond + 20);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.samples_with_live_frames == 1);
  CHECK(figures.samples_complete() == 1);
  CHECK(figures.samples_truncated() == 0);
  CHECK(figures.samples_failed() == 1);
  CHECK(figures.sample.cut_copies == 1);
}

TEST_CASE("In a frame larger than the copy a stack is believed that was the same before") {
  RecordingFixture run;
  run.stack_goes_on_with({kStack + 16 * (kCopiedRecords + 1), kCode + 0x200, 0, kCode + 0x300});
  run.read_time_ns = 1 * kNsPerSecond + 100;
  run.cut_sample_in_large_frame(1 * kNsPerSecond + 10);
  run.cut_sample_in_large_frame(1 * kNsPerSecond + 20);
  CHECK(run.recording->figures().samples_with_live_frames == 0);
  run.next_batch();
  run.read_time_ns = 1 * kNsPerSecond + 200;
  run.cut_sample_in_large_frame(1 * kNsPerSecond + 99);  // not looked at before, either
  CHECK(run.recording->figures().samples_with_live_frames == 0);
  run.cut_sample_in_large_frame(1 * kNsPerSecond + 101);
  CHECK(run.recording->figures().samples_with_live_frames == 1);
  run.stack_goes_on_with({kStack + 16 * (kCopiedRecords + 1), kCode + 0x280, 0, kCode + 0x300});
  run.cut_sample_in_large_frame(1 * kNsPerSecond + 150);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.samples_with_live_frames == 1);
  CHECK(figures.samples_truncated() == 4);
}

TEST_CASE("What was read for one sample serves the others of its batch, and none of the next") {
  RecordingFixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kNsPerSecond + 10);
  const size_t reads = run.reads;
  run.live_words.clear();  // since
  run.cut_sample(1 * kNsPerSecond + 20);
  run.cut_sample(1 * kNsPerSecond + 30);
  CHECK(run.reads == reads);
  CHECK(run.recording->figures().samples_with_live_frames == 3);
  run.next_batch();
  run.cut_sample(1 * kNsPerSecond + 40);
  CHECK(run.reads > reads);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.samples_with_live_frames == 3);
  CHECK(figures.sample.samples_with_joined_frames == 1);
}

TEST_CASE("Where the process has gone on, a stack has the outer frames of the last whole one") {
  RecordingFixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kNsPerSecond + 10);
  run.stack_goes_on_with({0, kCode + 0x280});  // another call since
  run.change_copied_part();
  run.cut_sample(1 * kNsPerSecond + 20);
  run.end_process();
  run.cut_sample(1 * kNsPerSecond + 30);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  const Profile& profile = run.sink.profiles.at(0);
  for (const Sample& sample : profile.samples) {
    const auto stack = profile.stack(sample.stack);
    REQUIRE(stack.size() == kCopiedRecords + 2);
    CHECK(profile.frames[stack.back()].instruction_addr == kCode + 0x200);
  }
  CHECK(figures.samples_complete() == 3);
  CHECK(figures.samples_truncated() == 0);
  CHECK(figures.sample.samples_with_live_frames == 1);
  CHECK(figures.sample.live_frames == 1);
  CHECK(figures.sample.samples_with_joined_frames == 2);
  CHECK(figures.sample.joined_frames == 2);
}

TEST_CASE("What was read for a sample that it was not believed of is no stack to join with") {
  RecordingFixture run;
  run.stack_goes_on_with({0, kCode + 0x200});
  run.change_copied_part();
  run.read_time_ns = 1 * kNsPerSecond + 15;
  run.cut_sample(1 * kNsPerSecond + 10);
  run.end_process();
  run.cut_sample(1 * kNsPerSecond + 20);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.samples_truncated() == 2);
  CHECK(figures.sample.samples_with_joined_frames == 0);
}

TEST_CASE("A stack that was cut goes on as the thread's next whole one, through the same frames") {
  RecordingFixture run;
  run.cut_sample(1 * kNsPerSecond + 10);
  run.cut_sample(1 * kNsPerSecond + 20);
  CHECK(run.recording->figures().samples == 2);
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kNsPerSecond + 30);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.samples.size() == 3);
  for (const Sample& sample : profile.samples) {
    const auto stack = profile.stack(sample.stack);
    REQUIRE(stack.size() == kCopiedRecords + 2);
    CHECK(profile.frames[stack.back()].instruction_addr == kCode + 0x200);
  }
  CHECK(figures.samples_complete() == 3);
  CHECK(figures.sample.samples_with_joined_frames == 2);
  CHECK(figures.sample.joined_frames == 2);
  CHECK(figures.sample.cut_copies == 3);
}

TEST_CASE("A stack that was cut goes on as no other, no later, and no other chunk's one") {
  const auto joined_with_next = [](auto&& between, uint64_t later_ns) {
    RecordingFixture run;
    run.cut_sample(1 * kNsPerSecond + 10);
    between(run);
    run.stack_goes_on_with({0, kCode + 0x200});
    run.cut_sample(1 * kNsPerSecond + 10 + later_ns);
    const RunFigures figures = run.finish(2 * kNsPerSecond);
    CHECK(figures.samples_complete() + figures.samples_truncated() == run.records_seen);
    CHECK(figures.broken_law().empty());
    return figures.sample.samples_with_joined_frames;
  };
  const auto nothing = [](RecordingFixture&) {};
  CHECK(joined_with_next(nothing, kMaxJoinAge_ns) == 1);
  CHECK(joined_with_next(nothing, kMaxJoinAge_ns + 1) == 0);
  const auto whole_one = [](RecordingFixture& run) { run.sample(1 * kNsPerSecond + 15); };
  CHECK(joined_with_next(whole_one, 20) == 0);
  const auto other_thread = [](RecordingFixture& run) {
    run.sample(1 * kNsPerSecond + 15, kCode + 8, kPid + 1);
  };
  CHECK(joined_with_next(other_thread, 20) == 1);
  const auto other_map = [](RecordingFixture& run) {
    run.map_code(1 * kNsPerSecond + 15, 0x50000);
  };
  CHECK(joined_with_next(other_map, 20) == 0);
  const auto chunk_ends = [](RecordingFixture& run) { run.recording->on_time(61 * kNsPerSecond); };
  CHECK(joined_with_next(chunk_ends, 20) == 0);
  const auto other_frame = [](size_t from_end) {
    return [from_end](RecordingFixture& run) {
      run.copy[2 * (kCopiedRecords - from_end) + 1] = kCode + 0x180;
    };
  };
  CHECK(joined_with_next(other_frame(unwind::kFramesInCommon), 20) == 0);
  CHECK(joined_with_next(other_frame(unwind::kFramesInCommon + 1), 20) == 1);
}

TEST_CASE("Through few frames a cut stack goes on where whole ones before and after go on alike") {
  struct Whole {
    uint64_t time_ns;
    uint64_t outermost_pc;
  };
  const auto joined = [](size_t frames_in_common, Whole before, Whole after) {
    RecordingFixture run(60 * kNsPerSecond, false);
    run.whole_deep_sample(before.time_ns, before.outermost_pc);
    run.copy[2 * (kCopiedRecords - frames_in_common - 1) + 1] = kCode + 0x180;
    run.cut_sample(2 * kNsPerSecond);
    run.whole_deep_sample(after.time_ns, after.outermost_pc);
    const RunFigures figures = run.finish(3 * kNsPerSecond);
    const auto stack = run.sink.profiles.at(0).stack(run.sink.profiles[0].samples[1].stack);
    const uint64_t was_joined = figures.sample.samples_with_joined_frames;
    CHECK(stack.size() == kCopiedRecords + 1 + was_joined);
    CHECK(figures.samples_complete() == 2 + was_joined);
    return was_joined;
  };
  const Whole before{2 * kNsPerSecond - kMaxJoinAge_ns, kCode + 0x200};
  const Whole after{2 * kNsPerSecond + kMaxJoinAge_ns, kCode + 0x200};
  constexpr size_t kEnough = unwind::kFramesInCommonOnBothSides;
  CHECK(joined(kEnough, before, after) == 1);
  CHECK(joined(kEnough - 1, before, after) == 0);
  CHECK(joined(kEnough, before, {after.time_ns, kCode + 0x280}) == 0);
  CHECK(joined(kEnough, {before.time_ns - 1, before.outermost_pc}, after) == 0);
  CHECK(joined(kEnough, before, {after.time_ns + 1, after.outermost_pc}) == 0);
}

TEST_CASE("Of many samples that wait the oldest are kept as they are") {
  RecordingFixture run;
  WaitingSample one;
  one.frames.resize(kCopiedRecords + 1);
  one.last_steps.resize(unwind::kFramesInCommon);
  const size_t waiting = kMaxWaiting_bytes / one.size_bytes();
  for (size_t i = 0; i < waiting + 10; ++i) run.cut_sample(1 * kNsPerSecond + 10 + i);
  run.stack_goes_on_with({0, kCode + 0x200});
  run.cut_sample(1 * kNsPerSecond + 10 + waiting + 10);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.samples_with_joined_frames == waiting);
  const Profile& profile = run.sink.profiles.at(0);
  REQUIRE(profile.samples.size() == waiting + 11);
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const bool is_cut = profile.stack(profile.samples[i].stack).size() == kCopiedRecords + 1;
    REQUIRE(is_cut == (i < 10));
  }
}

TEST_CASE("Where no process can be asked, cut stacks go on as whole ones before and after them") {
  RecordingFixture run(60 * kNsPerSecond, false);
  run.cut_sample(1 * kNsPerSecond + 10);
  run.whole_deep_sample(1 * kNsPerSecond + 20);
  run.cut_sample(1 * kNsPerSecond + 30);
  run.cut_sample(1 * kNsPerSecond + 21 + kMaxJoinAge_ns);
  const RunFigures figures = run.finish(2 * kNsPerSecond);
  CHECK(figures.sample.samples_with_joined_frames == 2);
  CHECK(figures.samples_complete() == 3);
  CHECK(figures.samples_truncated() == 1);
}
