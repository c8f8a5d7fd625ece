// A recording that kept its raw log, and that log's replay: the same profile twice.
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <filesystem>

using namespace sentry_prof::testing;

namespace {

Recording replay(const TemporaryDirectory& directory, const std::string& log,
                 const std::string& format) {
  CommandResult result = run_command(
      {.arguments = {sentry_prof_path(), "record", "--replay", log, "--format", format, "-o",
                     directory.file("out.json"), "--summary", directory.file("summary.json")}});
  INFO(result.standard_error);
  REQUIRE(result.status() == 0);
  return read_recording(directory, std::move(result));
}

void require_same_images(const LoadedProfile& live, const LoadedProfile& replayed) {
  REQUIRE(live.images.size() == replayed.images.size());
  for (size_t i = 0; i < live.images.size(); ++i) {
    CHECK(live.images[i].code_file == replayed.images[i].code_file);
    CHECK(live.images[i].debug_id == replayed.images[i].debug_id);
    CHECK(live.images[i].code_id == replayed.images[i].code_id);
    CHECK(live.images[i].begin == replayed.images[i].begin);
    CHECK(live.images[i].end == replayed.images[i].end);
  }
}

void require_same_frames(const LoadedProfile& live, const LoadedProfile& replayed) {
  REQUIRE(live.frames.size() == replayed.frames.size());
  for (size_t i = 0; i < live.frames.size(); ++i) {
    CHECK(live.frames[i].function == replayed.frames[i].function);
    CHECK(live.frames[i].address == replayed.frames[i].address);
    CHECK(live.frames[i].image == replayed.frames[i].image);
  }
}

void require_same_samples(const LoadedProfile& live, const LoadedProfile& replayed) {
  REQUIRE(live.samples.size() == replayed.samples.size());
  for (size_t i = 0; i < live.samples.size(); ++i) {
    CHECK(live.samples[i].time_ns == replayed.samples[i].time_ns);
    CHECK(live.samples[i].thread_id == replayed.samples[i].thread_id);
    CHECK(live.samples[i].stack == replayed.samples[i].stack);
  }
}

// Everything but ids, which are drawn anew.
void require_same(const Recording& live, const Recording& replayed) {
  REQUIRE(live.profiles.size() == replayed.profiles.size());
  for (size_t i = 0; i < live.profiles.size(); ++i) {
    INFO("file " << i);
    CHECK(live.profiles[i].release == replayed.profiles[i].release);
    CHECK(live.profiles[i].thread_names == replayed.profiles[i].thread_names);
    require_same_images(live.profiles[i], replayed.profiles[i]);
    require_same_frames(live.profiles[i], replayed.profiles[i]);
    require_same_samples(live.profiles[i], replayed.profiles[i]);
  }
  for (const char* figure : {"sample_records", "samples", "samples_lost"}) {
    CHECK(live.summary().number(figure) == replayed.summary().number(figure));
  }
}

void record_and_replay(RecordArguments arguments) {
  const TemporaryDirectory live_directory, log_directory, directory;
  const std::string log = log_directory.file("raw.log");
  arguments.options.insert(arguments.options.end(), {"--raw-log", log});
  const Recording live = record_well(live_directory, arguments);
  CHECK((std::filesystem::status(log).permissions() & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  const Recording replayed = replay(directory, log, arguments.format);
  require_same(live, replayed);
}

}  // namespace

TEST_CASE("A command's raw log replays to the same profile", "[replay]") {
  SKIP_IF(missing_perf());
  record_and_replay({.command = {target_path("spin"), "0.5"}});
}

TEST_CASE("A raw log of several chunks replays to the same chunks", "[replay]") {
  SKIP_IF(missing_perf());
  record_and_replay({.options = {"--chunk-seconds", "0.5"},
                     .command = {target_path("spin"), "1.7"},
                     .format = "v1"});
}

TEST_CASE("A raw log of processes and libraries that come and go replays to the same profile",
          "[replay]") {
  SKIP_IF(missing_perf());
  record_and_replay({.command = {target_path("dlopen_loop"), "0.5"}});
  record_and_replay({.command = {target_path("fork_exec"), "0.4", target_path("spin"), "0.3"}});
}

TEST_CASE("A raw log of stacks deeper than their copies replays to the same profile", "[replay]") {
  SKIP_IF(missing_perf());
  record_and_replay({.command = {target_path("deep"), "200", "0.4", "2000"}});
  record_and_replay({.command = {target_path("deep"), "2", "0.4", "200000"}});
  record_and_replay({.command = {target_path("restless"), "0.6"}});
}

#ifdef __x86_64__
TEST_CASE("Code that no file holds is read again from the log", "[replay]") {
  SKIP_IF(missing_perf());
  record_and_replay({.command = {target_path("trampolines"), "0.4"}});
}
#endif

TEST_CASE("The raw log of an attach replays to the same profile", "[replay]") {
  SKIP_IF(missing_perf());
  const BackgroundProcess process({.arguments = {target_path("spin"), "30"}});
  sleep_for(0.1);
  record_and_replay({.options = {"-d", "0.5"}, .pids = {process.pid()}});
}

TEST_CASE("A replay into a pipe that closes is an error, not a death", "[replay]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string log = directory.file("raw.log");
  record_well(directory, {.options = {"--raw-log", log}, .command = {target_path("spin"), "0.3"}});
  const CommandResult result =
      run_command({.arguments = {"bash", "-c",
                                 "{ sleep 0.2; \"$0\" record --replay \"$1\" -o -; } | true; "
                                 "exit ${PIPESTATUS[0]}",
                                 sentry_prof_path(), log}});
  CHECK(result.status() == 7);
  CHECK(result.standard_error.find("Broken pipe") != std::string::npos);
}

TEST_CASE("What cannot be replayed is refused with a reason", "[replay]") {
  const TemporaryDirectory directory;
  const auto is_refused_with = [](const std::string& reason, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {sentry_prof_path(), "record"});
    const CommandResult result = run_command({.arguments = arguments});
    CHECK(result.status() != 0);
    INFO(result.standard_error);
    CHECK(result.standard_error.find(reason) != std::string::npos);
  };
  is_refused_with("none", {"--replay", directory.file("none")});
  is_refused_with("not a raw log", {"--replay", sentry_prof_path()});
  is_refused_with("takes the place of a target", {"--replay", "x", "-p", "1"});
}

TEST_CASE("The help keeps quiet about raw logs", "[replay]") {
  const CommandResult result = run_command({.arguments = {sentry_prof_path(), "record", "--help"}});
  CHECK(result.status() == 0);
  CHECK(result.standard_output.find("--summary") != std::string::npos);
  CHECK(result.standard_output.find("replay") == std::string::npos);
  CHECK(result.standard_output.find("raw-log") == std::string::npos);
}
