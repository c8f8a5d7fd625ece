// Attaching to what already runs.
#include "command_line.h"
#include "elf_identity.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"
#include "text_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace sentry_prof::testing;

namespace {

std::string executable_of(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error).string();
}

bool wait_until_it_is(const BackgroundProcess& process, std::string_view program) {
  return wait_until(
      [&] { return executable_of(process.pid()).find(program) != std::string::npos; });
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end_of_name = text.rfind(')');
  return end_of_name == std::string::npos ? '?' : text[end_of_name + 2];
}

std::string copied_target(const TemporaryDirectory& directory, const std::string& name,
                          const std::string& new_name) {
  const std::string path = directory.file(new_name);
  std::filesystem::copy_file(target_path(name), path,
                             std::filesystem::copy_options::overwrite_existing);
  return path;
}

void check_is_spin(const LoadedProfile& profile) {
  CHECK(profile.share_containing("spin_rounds") > 0.95);
  CHECK(profile.share_containing("alpha") > 0.4);
  CHECK(profile.share_containing("main") > 0.95);
}

const LoadedImage* image_of_leaf(const LoadedProfile& profile, std::string_view function) {
  for (const LoadedFrame& frame : profile.frames) {
    if (frame.function == function && frame.image != LoadedFrame::kNoImage) {
      return &profile.images[frame.image];
    }
  }
  return nullptr;
}

}  // namespace

TEST_CASE("Attaching to 500 sleeping threads misses none and stops nobody", "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("idle_threads"), "500", "60"}});
  REQUIRE(target.wait_for_output("ready"));
  BackgroundProcess profiler(
      record_command(directory, {.options = {"-d", "1"}, .pids = {target.pid()}}));
  bool was_stopped = false;
  wait_until([&] {
    const char state = state_of(target.pid());
    was_stopped = was_stopped || state == 'T' || state == 't';
    return !profiler.is_running();
  });
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK_FALSE(was_stopped);
  CHECK(target.is_running());
  CHECK(recording.summary().number("threads_attached") == 501);
  CHECK(recording.summary().number("threads") == 501);
}

TEST_CASE("A process that creates threads during the attach is not missed anywhere", "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("thread_churn"), "1000000"}});
  REQUIRE(wait_until_it_is(target, "thread_churn"));
  const Recording recording = record_well(
      directory, {.options = {"-d", "1"}, .pids = {target.pid()}, .frequency_hz = "4999"});
  CHECK(target.is_running());
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("churn_work") > 0.6);
  CHECK(recording.summary().share_complete() > 0.95);
}

TEST_CASE("What the target has mapped is opened before the first event", "[attach]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("strace"));
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  Command command = record_command(directory, {.options = {"-d", "0.3"}, .pids = {target.pid()}});
  command.arguments.insert(command.arguments.begin(),
                           {"strace", "-f", "-o", directory.file("calls"), "-e",
                            "trace=perf_event_open,openat,openat2"});
  // How it ends is not asked: LeakSanitizer fails in what is traced.
  INFO(run_command(command).standard_error);
  const std::string calls = contents_of(directory.file("calls"));
  const std::string pid = std::to_string(target.pid());
  const size_t first_event = calls.find(", " + pid + ", ");
  // By the map, or without the right to by the path.
  const size_t first_open =
      std::min(calls.find("/proc/" + pid + "/map_files/"), calls.find("/spin\""));
  REQUIRE(first_event != calls.npos);
  CHECK(first_open < first_event);
}

TEST_CASE("The target's end ends the recording, and all is written", "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "1.5"}});
  REQUIRE(wait_until_it_is(target, "spin"));
  const Recording recording = record_well(directory, {.pids = {target.pid()}});
  CHECK(target.wait().status() == 0);
  check_is_spin(recording.profile());
}

TEST_CASE("A process whose main thread has ended is recorded like any other", "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const BackgroundProcess target({.arguments = {target_path("leader_gone"), "60"}});
  REQUIRE(wait_until([&] { return state_of(target.pid()) == 'Z'; }));
  const Recording recording =
      record_well(directory, {.options = {"-d", "1"}, .pids = {target.pid()}});
  CHECK(recording.profile().share_containing("burn_on") > 0.95);
  CHECK(recording.summary().share_complete() > 0.98);
  CHECK(recording.profile().images_whose_file_contains("leader_gone") == 1);
  CHECK(recording.result.standard_error.find("could not be read") == std::string::npos);
}

TEST_CASE("A process that the kernel takes from every profiler at an exec is told of", "[attach]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  const TemporaryDirectory directory;
  struct statvfs file_system = {};
  REQUIRE(::statvfs(directory.path().c_str(), &file_system) == 0);
  if ((file_system.f_flag & ST_NOSUID) != 0) {
    return note_optional_skip("programs in the temporary directory do not become setuid (nosuid)");
  }
  const std::string program = copied_target(directory, "spin", "spin-of-nobody");
  constexpr uid_t kNobody = 65534;
  REQUIRE(::chown(program.c_str(), kNobody, kNobody) == 0);
  REQUIRE(::chmod(program.c_str(), 04755) == 0);
  const std::string script =
      "trap 'exec \"" + program + "\" 60' USR1; while :; do sleep 0.05; done";
  BackgroundProcess target({.arguments = {"sh", "-c", script}});
  BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
  REQUIRE(wait_until_sampling(profiler.pid()));
  sleep_for(1.0);  // in which it learns what the process has mapped
  target.send_signal(SIGUSR1);
  REQUIRE(wait_until([&] { return executable_of(target.pid()) == program; }));
  profiler.send_signal(SIGINT);
  const CommandResult result = profiler.wait();
  check_says(result, "a process went out of the recorder's sight");
  check_says(result, "sentry-prof record -p " + std::to_string(target.pid()));
}

TEST_CASE("Of several processes those that are there are recorded", "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  constexpr pid_t kNobody = 0x3fffff;  // kernel.pid_max is 2^22 at most
  const Recording recording =
      record(directory, {.options = {"-d", "0.5"}, .pids = {kNobody, target.pid()}});
  INFO(recording.result.standard_error);
  CHECK(recording.result.status() == 0);
  CHECK(recording.profile().share_containing("alpha") > 0.3);
  CHECK(recording.result.standard_error.find("there is no process 4194303") != std::string::npos);
}

TEST_CASE("Threads of the kernel, and of a process that is given, too, are left out of a list",
          "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("idle_threads"), "1", "60"}});
  REQUIRE(target.wait_for_output("ready"));
  pid_t thread = target.pid();
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(target.pid()) + "/task")) {
    thread = std::max(thread, std::stoi(task.path().filename()));
  }
  REQUIRE(thread != target.pid());
  std::string name;
  std::getline(std::ifstream("/proc/2/comm"), name);
  std::vector<pid_t> pids = {thread, target.pid()};
  if (name == "kthreadd") pids.push_back(2);
  const CommandResult result = record(directory, {.options = {"-d", "0.2"}, .pids = pids}).result;
  check_says(result, std::to_string(thread) + " is a thread of process " +
                         std::to_string(target.pid()) + ": only the others are recorded");
  if (pids.size() == 3) check_says(result, "2 is a thread of the kernel: only the others");
  CHECK(run_command(record_command(directory, {.pids = {thread}})).status() == 1);
}

TEST_CASE("Children that the target had before are told of, as they are not recorded", "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const BackgroundProcess target(
      {.arguments = {"/bin/sh", "-c", "'" + target_path("spin") + "' 60 & wait"}});
  const std::string pid = std::to_string(target.pid());
  std::string child;
  REQUIRE(wait_until([&] {
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    return static_cast<bool>(children >> child);
  }));
  const std::string note =
      "a process that the target had started before is not recorded: "
      "sentry-prof record -p " +
      pid + "," + child;
  const auto told = [&](const std::vector<std::string>& options, const std::vector<pid_t>& pids) {
    std::vector<std::string> all = {"-d", "0.2"};
    all.insert(all.end(), options.begin(), options.end());
    return contains(record(directory, {.options = all, .pids = pids}).result.standard_error, note);
  };
  CHECK(told({}, {target.pid()}));
  CHECK_FALSE(told({"--no-children"}, {target.pid()}));
  CHECK_FALSE(told({}, {target.pid(), std::stoi(child)}));
  ::kill(std::stoi(child), SIGKILL);
}

TEST_CASE("Children of children are told of, with what would record all of them", "[attach]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string inner = "\"" + target_path("spin") + "\" 60 & wait";
  const BackgroundProcess target({.arguments = {"/bin/sh", "-c", "sh -c '" + inner + "' & wait"}});
  const auto child_of = [](const std::string& pid) {
    std::string child;
    std::ifstream("/proc/" + pid + "/task/" + pid + "/children") >> child;
    return child;
  };
  const std::string pid = std::to_string(target.pid());
  std::string child;
  std::string grandchild;
  REQUIRE(wait_until([&] {
    child = child_of(pid);
    grandchild = child.empty() ? "" : child_of(child);
    return !grandchild.empty();
  }));
  const auto recording = record(directory, {.options = {"-d", "0.2"}, .pids = {target.pid()}});
  CHECK(contains(recording.result.standard_error,
                 "2 processes that the target had started before are not recorded: "
                 "sentry-prof record -p " +
                     pid + "," + child + "," + grandchild));
  for (const std::string& started : {grandchild, child}) ::kill(std::stoi(started), SIGKILL);
}

TEST_CASE("A program that was deleted while it runs keeps its names", "[deleted]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const TemporaryDirectory output;
  const std::string path = copied_target(directory, "spin", "spin_that_goes");
  BackgroundProcess target({.arguments = {path, "60"}});
  REQUIRE(wait_until_it_is(target, "spin_that_goes"));
  std::filesystem::remove(path);
  const Recording recording = record_well(output, {.options = {"-d", "1"}, .pids = {target.pid()}});
  check_is_spin(recording.profile());
  const LoadedImage* image = image_of_leaf(recording.profile(), "alpha");
  REQUIRE(image != nullptr);
  CHECK(image->debug_id == identity_by_the_documented_rule(target_path("spin")).debug_id);
  CHECK(image->code_file == path);
}

TEST_CASE("A program whose file was replaced while it runs is not taken for the new one",
          "[deleted]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const TemporaryDirectory output;
  const std::string path = copied_target(directory, "spin", "spin_of_today");
  BackgroundProcess target({.arguments = {path, "60"}});
  REQUIRE(wait_until_it_is(target, "spin_of_today"));
  std::filesystem::rename(copied_target(directory, "sleeper", "new"), path);
  const Recording recording = record_well(output, {.options = {"-d", "1"}, .pids = {target.pid()}});
  check_is_spin(recording.profile());
  const LoadedImage* image = image_of_leaf(recording.profile(), "alpha");
  REQUIRE(image != nullptr);
  CHECK(image->debug_id == identity_by_the_documented_rule(target_path("spin")).debug_id);
}

TEST_CASE("A program in a chroot is found by the path it has there", "[chroot]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  SKIP_IF(missing_program("chroot"));
  const TemporaryDirectory directory;
  const TemporaryDirectory output;
  std::filesystem::create_directory(directory.file("sentry-prof-inside"));
  copied_target(directory, "spin_static", "sentry-prof-inside/spin");
  BackgroundProcess target(
      {.arguments = {"chroot", directory.path(), "/sentry-prof-inside/spin", "60"}});
  REQUIRE(wait_until_it_is(target, "sentry-prof-inside"));
  const Recording recording = record_well(output, {.options = {"-d", "1"}, .pids = {target.pid()}});
  check_is_spin(recording.profile());
  const LoadedImage* image = image_of_leaf(recording.profile(), "alpha");
  REQUIRE(image != nullptr);
  CHECK(image->debug_id == identity_by_the_documented_rule(target_path("spin_static")).debug_id);
  CHECK(recording.profile().release.starts_with("spin@"));  // with its build id
}

TEST_CASE("A program in another mount namespace is found though its path leads nowhere here",
          "[namespace]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  SKIP_IF(missing_mount_namespace());
  const TemporaryDirectory directory;
  const TemporaryDirectory output;
  const std::string script = "mount -t tmpfs none '" + directory.path() + "' && cp '" +
                             target_path("spin") + "' '" + directory.path() +
                             "/spin_inside' && exec '" + directory.path() + "/spin_inside' 60";
  BackgroundProcess target({.arguments = {"unshare", "-m", "sh", "-c", script}});
  REQUIRE(wait_until_it_is(target, "spin_inside"));
  REQUIRE_FALSE(std::filesystem::exists(directory.file("spin_inside")));
  const Recording recording = record_well(output, {.options = {"-d", "1"}, .pids = {target.pid()}});
  check_is_spin(recording.profile());
  const LoadedImage* image = image_of_leaf(recording.profile(), "alpha");
  REQUIRE(image != nullptr);
  // Where this test runs in a chroot, /proc/PID/maps puts that directory in front for a process of
  // another namespace.
  CHECK(image->code_file.ends_with(directory.file("spin_inside")));
  CHECK(image->debug_id == identity_by_the_documented_rule(target_path("spin")).debug_id);
}

TEST_CASE("CPUs that a container is not shown are sampled", "[namespace]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  SKIP_IF(missing_mount_namespace());
  if (std::thread::hardware_concurrency() < 2) return note_optional_skip("needs two CPUs");
  const bool is_absent = GENERATE(false, true);
  const TemporaryDirectory directory;
  std::ofstream(directory.file("online")) << "0\n";
  const std::string hide =
      is_absent ? std::string("mount -t tmpfs none /sys")
                : "mount --bind '" + directory.file("online") + "' /sys/devices/system/cpu/online";
  const Command inner =
      record_command(directory, {.command = {"taskset", "-c", "1", target_path("spin"), "0.5"}});
  Command command{.arguments = {"unshare", "-m", "sh", "-c", hide + " && exec \"$0\" \"$@\""}};
  command.arguments.insert(command.arguments.end(), inner.arguments.begin(), inner.arguments.end());
  const Recording recording = read_recording(directory, run_command(command));
  CHECK(recording.result.status() == 0);
  check_is_spin(recording.profile());
}

TEST_CASE("In a time namespace, samples have the times at which they were taken", "[namespace]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  const std::vector<std::string> unshare = {"unshare", "-T", "--fork", "--monotonic"};
  const std::string offset_s = GENERATE(std::string("1000"), std::string("-1000"));
  std::vector<std::string> in_namespace = unshare;
  in_namespace.push_back(offset_s);
  std::vector<std::string> attempt = in_namespace;
  attempt.emplace_back("true");
  if (run_command({.arguments = attempt}).status() != 0) {
    return note_optional_skip("no time namespace may be made here");
  }
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const TemporaryDirectory output;
  Command command = record_command(output, {.options = {"-d", "1"}, .pids = {target.pid()}});
  command.arguments.insert(command.arguments.begin(), in_namespace.begin(), in_namespace.end());
  const int64_t begin_s = ::time(nullptr);
  const Recording recording = read_recording(output, run_command(command));
  const int64_t end_s = ::time(nullptr);
  INFO(recording.result.standard_error);
  CHECK(recording.result.status() == 0);
  CHECK(recording.summary().number("samples_lost") == 0);
  const std::vector<LoadedSample>& samples = recording.profile().samples;
  REQUIRE(samples.size() > 50);
  CHECK(samples.front().time_ns / 1'000'000'000 >= begin_s);
  CHECK(samples.back().time_ns / 1'000'000'000 <= end_s);
  CHECK(samples.back().time_ns - samples.front().time_ns > 500'000'000);
}

// As a container's files are: sentry-prof's own processes read them (file_server.cpp).
TEST_CASE("A program on an overlay has its names", "[overlay]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  const TemporaryDirectory directory;
  const TemporaryDirectory output;
  const std::string mount_overlay =
      "mount -t tmpfs none '" + directory.path() + "' && cd '" + directory.path() +
      "' && mkdir lower upper work merged && "
      "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged";
  SKIP_IF(missing_in_mount_namespace("an overlay", mount_overlay));
  const std::string script = mount_overlay + " && cp '" + target_path("spin") +
                             "' lower/spin_inside && exec merged/spin_inside 60";
  BackgroundProcess target({.arguments = {"unshare", "-m", "sh", "-c", script}});
  REQUIRE(wait_until_it_is(target, "spin_inside"));
  const Recording recording = record_well(output, {.options = {"-d", "1"}, .pids = {target.pid()}});
  check_is_spin(recording.profile());
  const LoadedImage* image = image_of_leaf(recording.profile(), "alpha");
  REQUIRE(image != nullptr);
  CHECK(image->debug_id == identity_by_the_documented_rule(target_path("spin")).debug_id);
}
