// Stacks, threads and images.
#include "judge_support.h"
#include "sentry/judge_images.h"
#include "sentry/judge_stacks.h"
#include "sentry/judge_threads.h"
#include "support/catch2.h"

#include <algorithm>

namespace sentry_prof::sentry {
namespace {

using Rules = std::vector<std::string>;

TEST_CASE("any stack with a missing frame is refused, used or not") {
  const Judged judged = v2().stack_up_to(1).judge(judge_stacks);
  CHECK(judged.rules() == Rules{"stack-frame"});
  CHECK(judged.pointer("stack-frame") == "/profile/stacks/2");
  CHECK(judged.report.relay.reason == "profiling_malformed_stacks");
  CHECK(v2().stack_up_to(0).judge(judge_stacks).rules().empty());
}

TEST_CASE("the documents ask for a stack and a frame") {
  FactsBuilder builder = v2();
  builder.facts().stacks.clear();
  builder.facts().frames.clear();
  builder.facts().frame_count = 0;
  const Judged judged = builder.judge(judge_stacks);
  CHECK(judged.rules() == Rules{"stacks-empty", "frames-empty"});
  CHECK(judged.report.relay.valid);
  CHECK_FALSE(judged.report.documents.valid);
}

TEST_CASE("a frame needs one of filename, function and address") {
  CHECK(v2().frame({.has_filename = true}).judge(judge_stacks).rules().empty());
  const Judged judged = v2().frame({.has_line = true}).judge(judge_stacks);
  CHECK(judged.pointer("frame-empty") == "/profile/frames/1");
  CHECK(judged.report.relay.valid);
  CHECK_FALSE(judged.report.documents.valid);
}

TEST_CASE("with platform rust and images each frame needs an address and a function") {
  FactsBuilder builder = v2();
  builder.frame({.has_function = true}).frame({.instruction_addr = 1, .has_address = true});
  CHECK(builder.judge(judge_stacks).rules().empty());
  builder.facts().platform = "rust";
  CHECK(builder.judge(judge_stacks).rules().empty());
  const Judged judged = builder.image(0x1000, 0x1000).judge(judge_stacks);
  CHECK(judged.pointer("frame-address-rust") == "/profile/frames/1");
  CHECK(judged.pointer("frame-function-rust") == "/profile/frames/2");
}

TEST_CASE("cocoa cuts addresses to 36 bits, in V1 on arm64 only") {
  constexpr FrameFact kWide{
      .instruction_addr = 0x1000000000, .has_address = true, .has_function = true};
  constexpr FrameFact kNarrow{
      .instruction_addr = 0xFFFFFFFFF, .has_address = true, .has_function = true};
  FactsBuilder chunk = v2();
  chunk.facts().platform = "cocoa";
  CHECK(chunk.frame(kNarrow).judge(judge_stacks).rules().empty());
  CHECK(chunk.frame(kWide).judge(judge_stacks).pointer("cocoa-addresses") ==
        "/profile/frames/2/instruction_addr");
  FactsBuilder profile = v1();
  profile.facts().platform = "cocoa";
  profile.facts().architecture = "x86_64";
  CHECK(profile.frame(kWide).judge(judge_stacks).rules().empty());
  profile.facts().architecture = "arm64e";
  CHECK(profile.judge(judge_stacks).rules() == Rules{"cocoa-addresses"});
}

TEST_CASE("frames are counted by what they tell") {
  const Judged judged = v2().frame({.has_function = true, .has_line = true}).judge(judge_stacks);
  CHECK(judged.summary.stacks == 2);
  CHECK(judged.summary.frames == 2);
  CHECK(judged.summary.frames_with_function == 2);
  CHECK(judged.summary.frames_with_line == 1);
  CHECK(judged.summary.frames_with_address == 1);
}

TEST_CASE("names of threads without samples are dropped") {
  const Judged judged = v2().v2_sample(1e9, 0, 1).metadata("a/b~c").judge(judge_threads);
  CHECK(judged.pointer("thread-metadata-unreferenced") == "/profile/thread_metadata/a~1b~0c");
  CHECK(judged.summary.dropped_thread_names == 1);
  CHECK(judged.summary.threads == 1);
}

TEST_CASE("threads without names are noted if others have one") {
  FactsBuilder builder = v2();
  CHECK(builder.v2_sample(1e9, 0, 1).v2_sample(1e9, 1, 1).judge(judge_threads).rules().empty());
  builder.facts().threads[1].has_metadata = true;
  const Judged judged = builder.judge(judge_threads);
  CHECK(judged.rules() == Rules{"thread-name-missing"});
  CHECK(judged.find("thread-name-missing")->message.find("\"100\"") != std::string::npos);
}

TEST_CASE("a message shows control characters and long ids cut") {
  const std::string id = "\x1b[2J" + std::string(200, 'x');
  const Judged judged = v2().metadata(id).judge(judge_threads);
  REQUIRE(judged.find("thread-metadata-unreferenced") != nullptr);
  const std::string& message = judged.find("thread-metadata-unreferenced")->message;
  CHECK(message.find('\x1b') == std::string::npos);
  CHECK(message.size() < 160);
}

TEST_CASE("the active thread of a V1 profile needs samples") {
  FactsBuilder builder = v1();
  builder.v1_sample(0, 0, 1);
  builder.facts().active_thread_id = "100";
  CHECK(builder.judge(judge_threads).rules().empty());
  builder.facts().active_thread_id = "1";
  CHECK(builder.judge(judge_threads).pointer("v1-active-thread") ==
        "/transaction/active_thread_id");
  builder.facts().active_thread_id.reset();
  CHECK(builder.judge(judge_threads).pointer("v1-active-thread") == "/transaction");
}

TEST_CASE("images beside each other are fine, one inside another is not") {
  FactsBuilder builder = v2();
  builder.facts().frames.clear();
  builder.frame({.instruction_addr = 0x1234, .has_address = true});
  builder.frame({.instruction_addr = 0x2234, .has_address = true});
  CHECK(builder.image(0x1000, 0x1000).image(0x2000, 0x1000).judge(judge_images).rules().empty());
  const Judged judged = builder.image(0x2800, 0x100).judge(judge_images);
  CHECK(judged.pointer("images-overlap") == "/debug_meta/images/2");
}

TEST_CASE("an image inside a wide one is found behind one that does not reach it") {
  const Judged judged =
      v2().image(0x1000, 0x10000).image(0x2000, 0x10).image(0x3000, 0x10).judge(judge_images);
  const Rules rules = judged.rules();
  CHECK(std::count(rules.begin(), rules.end(), "images-overlap") == 2);
}

TEST_CASE("an image without size reaches to the next one") {
  const Judged judged = v2().image(0x1000, 0).image(0x2000, 0x1000).judge(judge_images);
  CHECK(judged.rules() == Rules{"image-unused"});
  CHECK(judged.pointer("image-unused") == "/debug_meta/images/1");
}

TEST_CASE("the order of images and addresses outside of them are noted") {
  const Judged judged = v2().frame({.instruction_addr = 0x9000, .has_address = true})
                            .image(0x2000, 0x10)
                            .image(0x1000, 0x1000)
                            .judge(judge_images);
  CHECK(judged.pointer("images-order") == "/debug_meta/images/1");
  CHECK(judged.pointer("frame-image") == "/profile/frames/1/instruction_addr");
  CHECK(judged.pointer("image-unused") == "/debug_meta/images/0");
  CHECK(judged.report.valid);
}

TEST_CASE("a debug id of zeros is noted, a missing one is another rule's") {
  FactsBuilder builder = v2();
  builder.image(0x1000, 0x1000);
  CHECK(builder.judge(judge_images).rules().empty());
  builder.facts().images[0].debug_id = Uuid{};
  CHECK(builder.judge(judge_images).rules() == Rules{"image-debug-id-nil"});
}

TEST_CASE("images at the end of the address space do not wrap around") {
  const Judged judged = v2().frame({.instruction_addr = UINT64_MAX, .has_address = true})
                            .image(0x1000, 0x1000)
                            .image(UINT64_MAX - 1, UINT64_MAX)
                            .judge(judge_images);
  CHECK(judged.rules().empty());
}

}  // namespace
}  // namespace sentry_prof::sentry
