// Machines that permit little: other users, small limits.
#include "command_line.h"
#include "elf_identity.h"
#include "loaded_profile.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "sysctl_guard.h"
#include "target_path.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

using namespace sentry_prof::testing;

namespace {

constexpr const char* kParanoid = "/proc/sys/kernel/perf_event_paranoid";
constexpr const char* kRingLimit = "/proc/sys/kernel/perf_event_mlock_kb";

std::optional<std::string> missing_other_user() {
  if (auto missing = missing_root()) return missing;
  return missing_program("setpriv");
}

// A directory that nobody may write to, with what nobody needs: the build directory may lie where
// other users cannot look.
class NobodysPlace {
 public:
  NobodysPlace() {
    namespace fs = std::filesystem;
    fs::permissions(directory_.path(), fs::perms(0777));
    fs::copy_file(sentry_prof_path(), directory_.file("sentry-prof"));
    for (const char* name : {"spin", "idle_threads"}) {
      fs::copy_file(target_path(name), directory_.file(name));
    }
  }

  const TemporaryDirectory& directory() const { return directory_; }
  std::string file(const std::string& name) const { return directory_.file(name); }

  // `limits`: options of prlimit, such as "--nofile=64:64".
  Command command(std::vector<std::string> arguments, std::vector<std::string> limits = {}) const {
    Command result;
    if (!limits.empty()) {
      result.arguments.push_back("prlimit");
      for (auto& limit : limits) result.arguments.push_back(std::move(limit));
    }
    for (const char* word :
         {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"}) {
      result.arguments.emplace_back(word);
    }
    for (auto& argument : arguments) result.arguments.push_back(std::move(argument));
    result.directory = directory_.path();
    return result;
  }

  Command record_command(std::vector<std::string> arguments,
                         std::vector<std::string> limits = {}) const {
    std::vector<std::string> all = {
        file("sentry-prof"), "record", "-F", "997", "-o", file("out.json"), "--summary",
        file("summary.json")};
    for (auto& argument : arguments) all.push_back(std::move(argument));
    return command(std::move(all), std::move(limits));
  }

 private:
  TemporaryDirectory directory_;
};

// The same where that user may profile own processes, without their time in system calls.
class OrdinaryUsersPlace : public NobodysPlace {
 public:
  OrdinaryUsersPlace() { REQUIRE(paranoid_.is_set()); }

 private:
  SysctlGuard paranoid_{kParanoid, "2"};
};

std::string path_of_c_library() {
  Dl_info facts{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&std::getenv), &facts) != 0);
  return std::filesystem::canonical(facts.dli_fname);
}

void check_is_spin(const Recording& recording) {
  INFO(recording.result.standard_error);
  CHECK(recording.result.status() == 0);
  REQUIRE(recording.profiles.size() == 1);
  CHECK(recording.profile().share_containing("spin_rounds") > 0.9);
  CHECK(recording.summary().share_complete() > 0.95);
}

}  // namespace

TEST_CASE("An ordinary user profiles an own program, without the time in system calls",
          "[nobody]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_other_user());
  const OrdinaryUsersPlace place;
  const Recording recording = read_recording(
      place.directory(), run_command(place.record_command({"--", place.file("spin"), "0.5"})));
  check_is_spin(recording);
  CHECK(recording.summary().flag("kernel_excluded"));
  check_says(recording.result, "time in system calls is missing");
}

TEST_CASE("An ordinary user gets whole stacks through a library that was deleted or replaced",
          "[nobody]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_other_user());
  const OrdinaryUsersPlace place;
  const std::string library = place.file("libc.so.6");
  const std::string c_library = path_of_c_library();
  std::filesystem::copy_file(c_library, library);
  // It has ended when its functions get their names.
  Command command = place.command({place.file("spin"), "2"});
  command.environment = {{"LD_LIBRARY_PATH", place.directory().path()}};
  BackgroundProcess target(command);
  REQUIRE(wait_until_used(target.pid(), 0.05));  // all of its libraries are loaded by then
  const bool is_replaced = GENERATE(false, true);
  std::filesystem::remove(library);
  if (is_replaced) std::filesystem::copy_file(place.file("spin"), library);
  const Recording recording = read_recording(
      place.directory(), run_command(place.record_command({"-p", std::to_string(target.pid())})));
  check_is_spin(recording);
  CHECK(recording.profile().share_containing("__libc_start_main") > 0.9);
  CAPTURE(recording.result.standard_error);
  const auto& images = recording.profile().images;
  const auto image = std::ranges::find(images, library, &LoadedImage::code_file);
  REQUIRE(image != images.end());
  CHECK(image->debug_id == identity_by_the_documented_rule(c_library).debug_id);
}

TEST_CASE("Another user's process is refused with advice", "[nobody]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_other_user());
  const NobodysPlace place;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const CommandResult result =
      run_command(place.record_command({"-p", std::to_string(target.pid()), "-d", "1"}));
  CHECK(result.status() == 1);
  check_says(result, "another user");
  check_says(result, "root");
}

TEST_CASE("A directory in which one may not write is told before anything runs", "[nobody]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_other_user());
  const NobodysPlace place;
  const TemporaryDirectory roots_own;
  const CommandResult result = run_command(
      place.command({place.file("sentry-prof"), "record", "-o", roots_own.file("out.json"), "--",
                     "touch", place.file("the-command-ran")}));
  CHECK(result.status() == 125);
  check_says(result, roots_own.path());
  check_says(result, "Permission denied");
  CHECK_FALSE(std::filesystem::exists(place.file("the-command-ran")));
}

TEST_CASE("perf_event_paranoid that forbids everything is named, with the way out", "[paranoid]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_other_user());
  const NobodysPlace place;
  const std::string level = GENERATE(std::string("3"), std::string("4"));
  const SysctlGuard paranoid(kParanoid, level);
  REQUIRE(paranoid.is_set());
  const CommandResult result = run_command(place.record_command({"--", place.file("spin"), "0.5"}));
  // Kernels without a distribution's patch take 3 and more as 2.
  if (result.status() == 0) {
    check_is_spin(read_recording(place.directory(), result));
    return;
  }
  CHECK(result.status() == 125);
  check_says(result, "perf_event_paranoid");
  check_says(result, level);
}

TEST_CASE("Too little memory for the rings: smaller rings, and the summary says so", "[mlock]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_other_user());
  const NobodysPlace place;
  const SysctlGuard paranoid(kParanoid, "2");
  const std::string kib = GENERATE(std::string("36"), std::string("132"));
  const SysctlGuard ring_limit(kRingLimit, kib);
  REQUIRE(ring_limit.is_set());
  const CommandResult result =
      run_command(place.record_command({"--", place.file("spin"), "0.5"}, {"--memlock=0:0"}));
  const Recording recording = read_recording(place.directory(), result);
  INFO(result.standard_error);
  if (result.status() == 0) {
    CHECK(recording.summary().number("ring_bytes_per_cpu") <= std::stod(kib) * 1024);
    CHECK(recording.summary().number("ring_bytes_per_cpu") > 0);
    return;
  }
  CHECK(result.status() == 125);
  check_says(result, "perf_event_mlock_kb");
}

TEST_CASE("Where the kernel allows less than the default frequency, that is taken",
          "[sample_rate]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  const TemporaryDirectory directory;
  const SysctlGuard max_rate("/proc/sys/kernel/perf_event_max_sample_rate", "50");
  REQUIRE(max_rate.is_set());
  const auto record = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {sentry_prof_path(), "record", "-o",
                                          directory.file("out.json")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", target_path("spin"), "0.5"});
    return run_command({.arguments = std::move(arguments)});
  };
  const CommandResult by_default = record({});
  CHECK(by_default.status() == 0);
  check_says(by_default, "sampling at 50 Hz, not at 101");
  CHECK(LoadedProfile::load(directory.file("out.json")).share_containing("spin_rounds") > 0.9);
  const CommandResult asked_for = record({"-F", "101"});
  CHECK(asked_for.status() == 125);
  check_says(asked_for, "perf_event_max_sample_rate");
}

namespace {

// All of them, or a message that says what limit is in the way.
void check_all_threads_or_why_not(const Recording& recording) {
  INFO(recording.result.standard_error);
  if (recording.figures.has_value()) {
    CHECK(recording.summary().number("threads_attached") == 501);
    return;
  }
  CHECK(recording.result.status() == 1);
  check_says(recording.result, "open files");
  check_says(recording.result, "ulimit -n");
}

}  // namespace

TEST_CASE("500 threads and a soft limit of 64 files: the limit is raised, none is missed",
          "[nofile]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("prlimit"));
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("idle_threads"), "500", "60"}});
  REQUIRE(target.wait_for_output("ready"));
  Command command = record_command(directory, {.options = {"-d", "0.5"}, .pids = {target.pid()}});
  command.arguments.insert(command.arguments.begin(), {"prlimit", "--nofile=64:4096"});
  const Recording recording = read_recording(directory, run_command(command));
  INFO(recording.result.standard_error);
  REQUIRE(recording.figures.has_value());
  CHECK(recording.summary().number("threads_attached") == 501);
}

TEST_CASE("500 threads and a hard limit of 64 files: all of them, or why not", "[nofile]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("prlimit"));
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("idle_threads"), "500", "60"}});
  REQUIRE(target.wait_for_output("ready"));
  Command command = record_command(directory, {.options = {"-d", "0.5"}, .pids = {target.pid()}});
  command.arguments.insert(command.arguments.begin(), {"prlimit", "--nofile=64:64"});
  check_all_threads_or_why_not(read_recording(directory, run_command(command)));
}

TEST_CASE("Of 200 processes each takes a descriptor, too: the limit that is asked for is enough",
          "[nofile]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_other_user());
  SKIP_IF(missing_program("prlimit"));
  const char* const script =
      "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i + 1)); done; echo $(jobs -p); wait";
  BackgroundProcess target({.arguments = {"bash", "-c", script}});
  REQUIRE(target.wait_for_output("\n"));
  std::istringstream words(target.standard_output());
  const std::vector<pid_t> pids{std::istream_iterator<pid_t>(words), {}};
  REQUIRE(pids.size() == 200);
  // Root may go beyond the hard limit.
  const auto record_with = [&](const TemporaryDirectory& directory, const std::string& limit) {
    Command command = record_command(directory, {.options = {"-d", "0.2"}, .pids = pids});
    command.arguments.insert(
        command.arguments.begin(),
        {"setpriv", "--bounding-set=-sys_resource", "prlimit", "--nofile=" + limit + ":" + limit});
    return read_recording(directory, run_command(command));
  };
  const TemporaryDirectory too_few, enough;
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  const Recording refused = record_with(too_few, std::to_string(200 * (cpus + 1)));
  INFO(refused.result.standard_error);
  CHECK(refused.result.status() == 1);
  const std::string_view kBefore = "ulimit -n ";
  const size_t at = refused.result.standard_error.find(kBefore);
  REQUIRE(at != std::string::npos);
  const int asked_for = std::stoi(refused.result.standard_error.substr(at + kBefore.size()));
  CHECK(asked_for > 200 * (cpus + 1));
  const Recording recording = record_with(enough, std::to_string(asked_for));
  CHECK(recording.summary().number("threads_attached") == 200);
}

TEST_CASE("A launched command gets along with the limit that is asked for", "[nofile]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("prlimit"));
  const auto record_with = [](const TemporaryDirectory& directory, const std::string& limit) {
    Command command = record_command(directory, {.command = {target_path("spin"), "0.2"}});
    command.arguments.insert(
        command.arguments.begin(),
        {"setpriv", "--bounding-set=-sys_resource", "prlimit", "--nofile=" + limit + ":" + limit});
    return run_command(command);
  };
  const TemporaryDirectory directory;
  const CommandResult refused = record_with(directory, "22");
  INFO(refused.standard_error);
  CHECK(refused.status() == 125);
  const std::string_view kBefore = "ulimit -n ";
  const size_t at = refused.standard_error.find(kBefore);
  REQUIRE(at != std::string::npos);
  const int asked_for = std::stoi(refused.standard_error.substr(at + kBefore.size()));
  const CommandResult recorded = record_with(directory, std::to_string(asked_for));
  INFO(recorded.standard_error);
  CHECK(recorded.status() == 0);
  check_says(recorded, " samples in ");
}

TEST_CASE("500 threads and a hard limit of 64 files, as an ordinary user", "[nofile]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_other_user());
  SKIP_IF(missing_program("prlimit"));
  const NobodysPlace place;
  BackgroundProcess target(place.command({place.file("idle_threads"), "500", "60"}));
  REQUIRE(target.wait_for_output("ready"));
  const CommandResult result = run_command(
      place.record_command({"-p", std::to_string(target.pid()), "-d", "0.5"}, {"--nofile=64:64"}));
  check_all_threads_or_why_not(read_recording(place.directory(), result));
}
