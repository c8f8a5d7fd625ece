// Several processes in one profile.
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <fstream>

using namespace sentry_prof::testing;

namespace {

// Threads of which most samples contain the function.
std::vector<std::string> threads_busy_in(const LoadedProfile& profile, std::string_view function) {
  std::vector<std::string> found;
  for (const std::string& id : profile.thread_ids()) {
    if (profile.share_containing(function, id) > 0.5) found.push_back(id);
  }
  return found;
}

void check_each_file_is_one_image(const LoadedProfile& profile) {
  std::set<std::string> ids;
  for (const LoadedImage& image : profile.images) {
    INFO(image.code_file << " " << image.debug_id);
    CHECK(ids.insert(image.debug_id).second);
  }
}

}  // namespace

TEST_CASE("A program that forks and execs: each part has its functions", "[fork]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(
      directory, {.command = {target_path("fork_exec"), "0.8", target_path("spin"), "0.8"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().number("processes") == 2);
  REQUIRE(threads_busy_in(profile, "parent_work").size() == 1);
  REQUIRE(threads_busy_in(profile, "spin_rounds").size() == 1);
  const std::string parent = threads_busy_in(profile, "parent_work").front();
  const std::string child = threads_busy_in(profile, "spin_rounds").front();
  CHECK(parent != child);
  CHECK(profile.share_containing("child_before_exec", child) > 0.02);
  CHECK(profile.share_containing("child_before_exec", parent) == 0);
  CHECK(profile.share_containing("spin_rounds", parent) == 0);
  // A thread of another process than the first says which.
  CHECK(profile.thread_names.at(child).find("spin") != std::string::npos);
  check_each_file_is_one_image(profile);
  CHECK(profile.images_whose_file_contains("/libc.so") +
            profile.images_whose_file_contains("/libc-") ==
        1);
  CHECK(recording.summary().share_complete() > 0.95);
}

TEST_CASE("--no-children leaves new processes out", "[fork]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(
      directory, {.options = {"--no-children"},
                  .command = {target_path("fork_exec"), "0.6", target_path("spin"), "0.3"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("parent_work") > 0.9);
  CHECK(profile.share_containing("child_before_exec") == 0);
  CHECK(profile.share_containing("spin_rounds") == 0);
  CHECK(profile.thread_ids().size() == 1);
}

TEST_CASE("--no-children still follows new threads", "[fork]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(
      directory, {.options = {"--no-children"}, .command = {target_path("threads_named"), "0.7"}});
  for (const std::string colour : {"red", "green", "blue"}) {
    CHECK(threads_busy_in(recording.profile(), "burn_" + colour).size() == 1);
  }
}

TEST_CASE("A process that becomes another program keeps its thread, not its functions", "[exec]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(
      directory, {.command = {target_path("exec_chain"), "0.4", target_path("exec_chain"), "0.6",
                              target_path("spin"), "2"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().number("processes") == 1);
  REQUIRE(profile.thread_ids().size() == 1);
  CHECK(profile.share_containing("before_exec") > 0.3);
  CHECK(profile.share_containing("spin_rounds") > 0.3);
  // What runs first comes first: no sample of the old program after one of the new.
  bool is_new = false;
  for (const LoadedSample* sample : profile.busy_samples()) {
    is_new = is_new || profile.contains(*sample, "spin_rounds");
    if (is_new) CHECK_FALSE(profile.contains(*sample, "before_exec"));
  }
  CHECK(recording.summary().share_complete() > 0.95);
}

TEST_CASE("make -j2: all its jobs in one profile, each library once", "[make]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("make"));
  const TemporaryDirectory directory;
  std::ofstream(directory.file("Makefile")) << "all: one two three\n"
                                            << "one two:\n\t@" << target_path("spin") << " 0.4\n"
                                            << "three:\n\t@" << target_path("spin") << " 0.3; "
                                            << target_path("fork_exec") << " 0.3 /bin/true\n";
  const Recording recording =
      record_well(directory, {.command = {"make", "-s", "-j2", "-C", directory.path()}});
  const LoadedProfile& profile = recording.profile();
  // make, two jobs that are spin itself or a shell with it, a shell with two, a fork, true.
  CHECK(recording.summary().number("processes") >= 7);
  const auto spinning = threads_busy_in(profile, "spin_rounds");
  CHECK(spinning.size() == 3);
  for (const std::string& id : spinning) {
    CHECK(profile.thread_names.at(id).find("spin") != std::string::npos);
  }
  CHECK(threads_busy_in(profile, "parent_work").size() == 1);
  CHECK(profile.images_whose_file_contains("/spin") == 1);
  check_each_file_is_one_image(profile);
}

TEST_CASE("A shell pipeline: every part of it is there", "[pipeline]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string pipeline = target_path("spin") + " 0.5 | " + target_path("sleeper") +
                               " 0.5 | " + target_path("fork_exec") + " 0.4 /bin/true";
  const Recording recording = record_well(directory, {.command = {"sh", "-c", pipeline}});
  const LoadedProfile& profile = recording.profile();
  CHECK(threads_busy_in(profile, "spin_rounds").size() == 1);
  CHECK(threads_busy_in(profile, "work_100_ms").size() == 1);
  CHECK(threads_busy_in(profile, "parent_work").size() == 1);
  check_each_file_is_one_image(profile);
}

TEST_CASE("Two processes attached to at once share their images", "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess first({.arguments = {target_path("spin"), "60"}});
  BackgroundProcess second({.arguments = {target_path("spin"), "60"}});
  const Recording recording =
      record_well(directory, {.options = {"-d", "1"}, .pids = {first.pid(), second.pid()}});
  const LoadedProfile& profile = recording.profile();
  CHECK(threads_busy_in(profile, "spin_rounds").size() == 2);
  CHECK(profile.images_whose_file_contains("/spin") == 1);
  check_each_file_is_one_image(profile);
  // The same function at the same address in both is the same frame.
  std::set<std::pair<std::string, uint64_t>> seen;
  for (const LoadedFrame& frame : profile.frames) {
    INFO(frame.function);
    CHECK(seen.emplace(frame.function, frame.address).second);
  }
  CHECK(first.is_running());
  CHECK(second.is_running());
}
