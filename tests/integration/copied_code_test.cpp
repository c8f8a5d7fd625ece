// Programs that copy their own code into memory without a file, to have it in huge pages.
#include "prerequisites.h"
#include "process.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <string>

using namespace sentry_prof::testing;

namespace {

void check_copied_code_is_walked_and_named(const Recording& recording) {
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().share_complete() > 0.98);
  const auto is_whole = [&](const LoadedSample& sample) {
    return profile.leaf(sample) == "copied_inner" &&
           profile.index_of(sample, "copied_outer") == 1 && profile.index_of(sample, "main") == 2 &&
           profile.root(sample) == "_start";
  };
  CHECK(profile.share_of_samples(is_whole) > 0.95);
}

}  // namespace

TEST_CASE("Code that a program has copied into memory of its own is the program's", "[copied]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string way = GENERATE(std::string("piece"), std::string("whole"));
  const std::string program = target_path("copied_text");
  SECTION("launched") {
    check_copied_code_is_walked_and_named(record_well(directory, {.command = {program, "1", way}}));
  }
  SECTION("attached") {
    BackgroundProcess target({.arguments = {program, "60", way}});
    REQUIRE(target.wait_for_output("copied"));
    check_copied_code_is_walked_and_named(
        record_well(directory, {.options = {"-d", "1"}, .pids = {target.pid()}}));
  }
}

TEST_CASE("Code in the place of a program's that is not the same has no name", "[copied]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("copied_text"), "0.5", "other"}});
  CHECK(recording.profile().share_containing("copied_inner") == 0);
  CHECK(recording.summary().number("jit_frames") > 0);
}
