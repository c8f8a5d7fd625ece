#include "recording.h"

#include "support/catch2.h"
#include "support/sentry_checker.h"
#include "text_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace sentry_prof::testing {

namespace {

void require_sentry_takes(const LoadedProfile& profile) {
  INFO(profile.path);
  const std::string json = contents_of(profile.path);
  const CheckReport report = check_sentry_profile(json, kind_of(json));
  std::string problems;
  for (const std::string& problem : report.problems) problems += problem + "\n";
  INFO(report.reason << "\n" << problems);
  CHECK(report.is_accepted);
  CHECK(report.problems.empty());
}

void require_order(const LoadedProfile& profile) {
  INFO(profile.path);
  const auto by_time = [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; };
  CHECK(std::is_sorted(profile.samples.begin(), profile.samples.end(), by_time));
}

void require_no_overlap(const LoadedProfile& profile) {
  INFO(profile.path);
  std::vector<LoadedImage> images = profile.images;
  std::sort(images.begin(), images.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < images.size(); ++i) {
    INFO(images[i - 1].code_file << " and " << images[i].code_file);
    CHECK(images[i - 1].end <= images[i].begin);
  }
}

// Every sample that was seen is in a file or has a named reason why not.
void require_law_of_counting(const Recording& recording) {
  const Summary& summary = recording.summary();
  CHECK(summary.number("sample_records") + summary.number("losses/ring_full") ==
        summary.number("samples") + summary.sum_of("losses"));
  size_t busy = 0;
  size_t idle = 0;
  bool is_v1 = false;
  for (const LoadedProfile& profile : recording.profiles) {
    is_v1 = is_v1 || !profile.event_id.empty();
    busy += profile.busy_samples().size();
    idle += profile.idle_markers();
  }
  CHECK(static_cast<double>(busy) == summary.number("samples"));
  // A V1 file leaves out those that the server would drop.
  const double idle_markers = summary.number("idle_markers");
  CHECK((is_v1 ? static_cast<double>(idle) <= idle_markers
               : static_cast<double>(idle) == idle_markers));
  CHECK(static_cast<double>(recording.profiles.size()) == summary.number("chunks"));
}

void require_no_temporary(const TemporaryDirectory& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    INFO(entry.path());
    CHECK(entry.path().string().find("sentry-prof-tmp") == std::string::npos);
  }
}

}  // namespace

std::string sentry_prof_path() {
  const char* path = std::getenv("SENTRY_PROF");
  if (path == nullptr) throw std::runtime_error("SENTRY_PROF is not set: run by meson test");
  return path;
}

Command record_command(const TemporaryDirectory& directory, const RecordArguments& arguments) {
  Command command;
  command.arguments = {sentry_prof_path(),
                       "record",
                       "-F",
                       arguments.frequency_hz,
                       "--format",
                       arguments.format,
                       "-o",
                       directory.file("out.json"),
                       "--summary",
                       directory.file("summary.json")};
  auto& all = command.arguments;
  all.insert(all.end(), arguments.options.begin(), arguments.options.end());
  for (const pid_t pid : arguments.pids) {
    all.push_back("-p");
    all.push_back(std::to_string(pid));
  }
  if (!arguments.command.empty()) all.push_back("--");
  all.insert(all.end(), arguments.command.begin(), arguments.command.end());
  command.environment = arguments.environment;
  return command;
}

Recording read_recording(const TemporaryDirectory& directory, CommandResult result) {
  Recording recording;
  recording.result = std::move(result);
  CHECK_FALSE(recording.result.timed_out);
  require_no_temporary(directory);
  if (!std::filesystem::exists(directory.file("summary.json"))) return recording;
  recording.figures = Summary::load(directory.file("summary.json"));
  for (const std::string& file : recording.summary().texts("files")) {
    recording.profiles.push_back(LoadedProfile::load(file));
    require_sentry_takes(recording.profiles.back());
    require_order(recording.profiles.back());
    require_no_overlap(recording.profiles.back());
  }
  require_law_of_counting(recording);
  return recording;
}

Recording record(const TemporaryDirectory& directory, const RecordArguments& arguments) {
  return read_recording(directory, run_command(record_command(directory, arguments)));
}

Recording record_well(const TemporaryDirectory& directory, const RecordArguments& arguments) {
  Recording recording = record(directory, arguments);
  INFO(recording.result.standard_error);
  REQUIRE(recording.result.status() == 0);
  REQUIRE_FALSE(recording.profiles.empty());
  return recording;
}

bool wait_until_sampling(pid_t pid) {
  return wait_until([pid] {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
      const std::string file = std::filesystem::read_symlink(entry, error).string();
      if (file.find("[perf_event]") != std::string::npos) return true;
    }
    return false;
  });
}

}  // namespace sentry_prof::testing
