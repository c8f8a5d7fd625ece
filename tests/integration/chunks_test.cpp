// A long recording is several files.
#include "command_line.h"
#include "elf_identity.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <algorithm>

using namespace sentry_prof::testing;

namespace {

Recording record_in_chunks(const TemporaryDirectory& directory, const std::string& format) {
  return record_well(directory, {.options = {"--chunk-seconds", "1"},
                                 .command = {target_path("spin"), "3.3"},
                                 .format = format});
}

// On a busy machine what never sleeps has to wait for a CPU.
int64_t longest_gap_ns(const LoadedProfile& profile) {
  int64_t longest_ns = 0;
  for (size_t i = 1; i < profile.samples.size(); ++i) {
    longest_ns = std::max(longest_ns, profile.samples[i].time_ns - profile.samples[i - 1].time_ns);
  }
  return longest_ns;
}

}  // namespace

TEST_CASE("V2: chunks of one profiler, each with an id of its own, without a gap", "[chunks]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_in_chunks(directory, "v2");
  REQUIRE(recording.profiles.size() >= 3);
  CHECK(recording.profiles[0].path == directory.file("out.json"));
  CHECK(recording.profiles[1].path == directory.file("out.2.json"));
  CHECK(recording.profiles[2].path == directory.file("out.3.json"));
  std::set<std::string> chunk_ids;
  for (const LoadedProfile& profile : recording.profiles) {
    CHECK(profile.version == "2");
    CHECK(profile.profiler_id == recording.profile().profiler_id);
    CHECK(chunk_ids.insert(profile.chunk_id).second);
    CHECK(profile.share_containing("spin_rounds") > 0.9);
  }
  for (size_t i = 1; i < recording.profiles.size(); ++i) {
    const int64_t gap_ns = recording.profiles[i].samples.front().time_ns -
                           recording.profiles[i - 1].samples.back().time_ns;
    CHECK(gap_ns >= 0);
    CHECK(gap_ns < 200'000'000 + 2 * longest_gap_ns(recording.profiles[i]));
  }
  CHECK(recording.summary().number("samples_lost") == 0);
  CHECK(recording.summary().share_of_expected_samples() > 0.9);
}

TEST_CASE("V1: each file is a profile and a transaction of its own", "[chunks]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_in_chunks(directory, "v1");
  REQUIRE(recording.profiles.size() >= 3);
  std::set<std::string> ids;
  std::string previous_timestamp;
  for (const LoadedProfile& profile : recording.profiles) {
    CHECK(profile.version == "1");
    CHECK(ids.insert(profile.event_id).second);
    CHECK(ids.insert(profile.transaction_id).second);
    CHECK(profile.timestamp > previous_timestamp);  // the same offset everywhere: texts compare
    previous_timestamp = profile.timestamp;
    CHECK(profile.samples.front().time_ns >= 0);
    CHECK(profile.samples.back().time_ns < 1'200'000'000);
    // What Sentry shows first is a thread that was sampled.
    CHECK(profile.thread_ids().contains(profile.active_thread_id));
    CHECK(profile.share_containing("spin_rounds") > 0.9);
  }
}

TEST_CASE("A recording of two whole chunks is two files, without a rest", "[chunks]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(
      directory,
      {.options = {"-d", "4", "--chunk-seconds", "2"}, .command = {target_path("spin"), "4.5"}});
  CHECK(recording.profiles.size() == 2);
}

TEST_CASE("A directory as output: one file named after the program", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const CommandResult result =
      run_command({.arguments = {sentry_prof_path(), "record", "-F", "997", "-o",
                                 directory.path() + "/", "--", target_path("spin"), "0.3"}});
  CHECK(result.status() == 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    names.push_back(entry.path().filename().string());
  }
  REQUIRE(names.size() == 1);
  CHECK(names[0].starts_with("spin-"));
  CHECK(names[0].ends_with(".v2.json"));
  CHECK(LoadedProfile::load(directory.file(names[0])).share_containing("spin_rounds") > 0.9);
  CHECK((std::filesystem::status(directory.file(names[0])).permissions() &
         std::filesystem::perms(0777)) == std::filesystem::perms(0600));
}

TEST_CASE("Every figure that scripts may rely on is in the summary", "[summary]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("spin"), "0.3"}});
  const Summary& summary = recording.summary();
  for (const char* key : {"samples",
                          "samples_complete",
                          "samples_truncated",
                          "samples_failed",
                          "samples_lost",
                          "idle_markers",
                          "threads",
                          "chunks",
                          "images",
                          "duration_s",
                          "requested_hz",
                          "effective_hz",
                          "profiler_cpu_s",
                          "profiler_peak_rss_bytes",
                          "unwind_ns_total",
                          "ring_bytes_per_cpu",
                          "target_cpu_s",
                          "frames_by_origin/leaf",
                          "frames_by_origin/cfi",
                          "frames_by_origin/frame_pointer",
                          "frames_by_origin/link_register",
                          "frames_by_origin/code",
                          "samples_with_frames_left_out",
                          "frames_left_out",
                          "frames_by_origin/process_start",
                          "losses/ring_full",
                          "walk_ends/root"}) {
    INFO(key);
    REQUIRE(summary.has(key));
    CHECK(summary.number(key) >= 0);
  }
  CHECK(summary.number("requested_hz") == 997);
  CHECK(summary.number("samples") > 100);
  CHECK(summary.number("profiler_cpu_s") > 0);
  CHECK(summary.number("profiler_peak_rss_bytes") > 1 << 20);
  CHECK(summary.number("unwind_ns_total") > 0);
  CHECK(summary.number("target_cpu_s") > 0.2);
}

TEST_CASE("Release, environment and platform: from the options, else the variables, else known",
          "[metadata]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::vector<std::string> spin = {target_path("spin"), "0.2"};
  const Recording plain = record_well(
      directory,
      {.command = spin, .environment = {{"SENTRY_RELEASE", ""}, {"SENTRY_ENVIRONMENT", ""}}});
  const std::string build = identity_by_the_documented_rule(spin[0]).code_id.substr(0, 12);
  CHECK(plain.profile().release == "spin@" + build);
  CHECK(plain.profile().environment == "production");
  CHECK(plain.profile().platform == "rust");

  const std::map<std::string, std::string> variables = {{"SENTRY_RELEASE", "shop@1.2"},
                                                        {"SENTRY_ENVIRONMENT", "staging"}};
  const Recording told = record_well(directory, {.command = spin, .environment = variables});
  CHECK(told.profile().release == "shop@1.2");
  CHECK(told.profile().environment == "staging");

  const Recording chosen = record_well(
      directory,
      {.options = {"--release", "shop@2", "--environment", "test", "--platform", "native"},
       .command = spin,
       .environment = variables});
  CHECK(chosen.profile().release == "shop@2");
  CHECK(chosen.profile().environment == "test");
  CHECK(chosen.profile().platform == "native");
  CHECK_FALSE(contains(chosen.result.standard_error, "warning"));

  const Recording misspelt =
      record_well(directory, {.options = {"--platform", "rsut"}, .command = spin});
  CHECK(misspelt.profile().platform == "rsut");
  CHECK(contains(misspelt.result.standard_error, "warning: --platform rsut: Sentry symbolicates"));
}

TEST_CASE("A wall clock that is set while recording: what follows has the new time", "[chunks]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  // Another dynamic library before a sanitizer's own is no mistake here.
  const Recording recording =
      record_well(directory, {.command = {target_path("spin"), "3"},
                              .environment = {{"LD_PRELOAD", target_path("stepping_clock.so")},
                                              {"ASAN_OPTIONS", "verify_asan_link_order=0"}}});
  REQUIRE(recording.profiles.size() == 2);
  constexpr int64_t kHour_ns = 3'600'000'000'000;
  const int64_t gap_ns =
      recording.profiles[1].samples.front().time_ns - recording.profiles[0].samples.back().time_ns;
  CHECK(std::abs(gap_ns - kHour_ns) < 300'000'000);
  CHECK(recording.summary().number("clock_steps") == 1);
  CHECK(recording.summary().number("samples_lost") == 0);
  CHECK(recording.summary().share_of_expected_samples() > 0.9);
  CHECK(recording.result.standard_error.find("the clock was set") != std::string::npos);
}
