// `sentry-prof convert` on what the perf of this machine records. Skipped where there is no perf.
#include "command_line.h"
#include "prerequisites.h"
#include "text_file.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

using namespace sentry_prof::testing;

namespace {

namespace fs = std::filesystem;

// perf may be a script without the program for this kernel behind it.
std::optional<std::string> missing_perf_program() {
  if (auto missing = missing_perf()) return missing;
  if (run_command({.arguments = {"perf", "--version"}}).status() == 0) return std::nullopt;
  return "perf is not installed, or not for this kernel";
}

// What perf is no part of can be had everywhere: without it these tests are no failure.
#define SKIP_WITHOUT_PERF()                              \
  if (const auto why_skipped = missing_perf_program()) { \
    note_optional_skip(*why_skipped);                    \
    return;                                              \
  }                                                      \
  static_assert(true)

// A directory for perf's file, in which it also keeps its copies of files (HOME).
class PerfRecording {
 public:
  PerfRecording(const std::vector<std::string>& options, const std::vector<std::string>& command) {
    std::vector<std::string> arguments = {"perf",        "record", "-q",  "-F", "997", "-e",
                                          "cpu-clock:u", "-m",     "128", "-o", path()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), command.begin(), command.end());
    const CommandResult result =
        run_command({.arguments = arguments, .environment = {{"HOME", home_.path()}}});
    INFO(result.standard_error);
    REQUIRE(result.status() == 0);
  }
  std::string path() const { return directory_.file("perf.data"); }
  std::string home() const { return home_.path(); }

 private:
  TemporaryDirectory directory_, home_;
};

Recording convert(const TemporaryDirectory& directory, const PerfRecording& perf,
                  std::vector<std::string> options = {}) {
  std::vector<std::string> arguments = {sentry_prof_path(),
                                        "convert",
                                        perf.path(),
                                        "-o",
                                        directory.file("out.json"),
                                        "--summary",
                                        directory.file("summary.json")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  CommandResult result =
      run_command({.arguments = arguments, .environment = {{"HOME", perf.home()}}});
  INFO(result.standard_error);
  REQUIRE(result.status() == 0);
  return read_recording(directory, std::move(result));
}

const std::vector<std::string> kStacks = {"--call-graph", "dwarf,16384"};

std::vector<std::string> with_stacks(const std::vector<std::string>& options) {
  std::vector<std::string> all = kStacks;
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

void check_spin(const Recording& converted) {
  CHECK(converted.summary().number("samples") > 50);
  CHECK(converted.summary().share_complete() >= 0.98);
  const LoadedProfile& profile = converted.profile();
  CHECK(profile.share_containing("main") > 0.9);
  CHECK(profile.share_containing("alpha") > 0.3);
  CHECK(profile.images_whose_file_contains("spin") == 1);
}

// The features stand behind.
uint64_t end_of_records(const std::string& perf_data) {
  uint64_t place[2] = {};  // offset and size, in the header
  std::ifstream(perf_data, std::ios::binary).seekg(40).read(reinterpret_cast<char*>(place), 16);
  return place[0] + place[1];
}

int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void check_refused(const std::vector<std::string>& arguments, int status, const std::string& why) {
  const CommandResult result = run_sentry_prof(arguments);
  CHECK(result.status() == status);
  check_says(result, why);
}

}  // namespace

TEST_CASE("What perf recorded becomes a profile", "[convert]") {
  SKIP_WITHOUT_PERF();
  for (const auto& options : std::vector<std::vector<std::string>>{
           {}, {"-z"}, {"--buildid-all"}, {"-e", "task-clock:u"}, {"-d"}, {"-N"}}) {
    CAPTURE(options);
    const PerfRecording perf(with_stacks(options), {target_path("spin"), "0.4"});
    const TemporaryDirectory directory;
    check_spin(convert(directory, perf));
  }
}

TEST_CASE("perf.data becomes V1 profiles, cut by length", "[convert]") {
  SKIP_WITHOUT_PERF();
  const PerfRecording perf(with_stacks({}), {target_path("spin"), "0.9"});
  const TemporaryDirectory directory;
  const Recording converted =
      convert(directory, perf, {"--to", "sentry-v1", "--chunk-seconds", "0.4"});
  CHECK(converted.profiles.size() >= 2);
  check_spin(converted);
}

TEST_CASE("With a clock that perf tells of, times are those of the recording", "[convert]") {
  SKIP_WITHOUT_PERF();
  const int64_t begin_ns = unix_now_ns();
  const PerfRecording perf(with_stacks({"-k", "CLOCK_MONOTONIC"}), {target_path("spin"), "0.3"});
  const int64_t end_ns = unix_now_ns();
  // As if it were copied later.
  fs::last_write_time(perf.path(), fs::file_time_type::clock::now() + std::chrono::hours(1));
  const TemporaryDirectory directory;
  const Recording converted = convert(directory, perf);
  check_spin(converted);
  CHECK(converted.profile().samples.front().time_ns >= begin_ns);
  CHECK(converted.profile().samples.back().time_ns <= end_ns);
}

TEST_CASE("Without such a clock the file's last change is the end, and a note says so",
          "[convert]") {
  SKIP_WITHOUT_PERF();
  const PerfRecording perf(with_stacks({}), {target_path("spin"), "0.3"});
  const TemporaryDirectory directory;
  const int64_t before_ns = unix_now_ns();
  const Recording converted = convert(directory, perf);
  CHECK(converted.profile().samples.back().time_ns <= before_ns);
  CHECK(converted.profile().samples.back().time_ns > before_ns - 60'000'000'000);
  check_says(converted.result, "when it was recorded");
}

TEST_CASE("A file older than perf's stacks says nothing of its recording's end", "[convert]") {
  SKIP_WITHOUT_PERF();
  const PerfRecording perf(with_stacks({}), {target_path("spin"), "0.3"});
  const int64_t before_ns = unix_now_ns();
  for (const time_t modified_s : {0, 1, 315'532'800}) {
    const timespec times[2] = {{modified_s, 0}, {modified_s, 0}};
    REQUIRE(::utimensat(AT_FDCWD, perf.path().c_str(), times, 0) == 0);
    const TemporaryDirectory directory;
    const Recording converted = convert(directory, perf);
    CHECK(converted.summary().number("samples") > 50);
    CHECK(converted.profile().samples.back().time_ns > before_ns - 1'000'000'000);
    CHECK(converted.profile().samples.back().time_ns <= unix_now_ns());
    check_says(converted.result, "taken to be now");
  }
}

TEST_CASE("A file that is cut behind its records is told to be cut off", "[convert]") {
  SKIP_WITHOUT_PERF();
  const PerfRecording perf(with_stacks({"-k", "CLOCK_MONOTONIC"}), {target_path("spin"), "0.3"});
  fs::resize_file(perf.path(), end_of_records(perf.path()) + 16);
  const TemporaryDirectory directory;
  const Recording converted = convert(directory, perf);
  CHECK(converted.summary().number("samples") > 50);
  check_says(converted.result, "the file is cut off");
  check_says(converted.result, "would stand behind the cut");
  CHECK(converted.result.standard_error.find("-k CLOCK_MONOTONIC") == std::string::npos);
}

TEST_CASE("What went through a pipe is the same", "[convert]") {
  SKIP_WITHOUT_PERF();
  const TemporaryDirectory directory;
  const std::string file = directory.file("pipe.data");
  const CommandResult recorded =
      run_command({.arguments = {"bash", "-c",
                                 "perf record -q -F 997 -m 128 -e cpu-clock:u --call-graph "
                                 "dwarf,16384 -N -o - -- \"$1\" 0.4 > "
                                 "\"$0\"",
                                 file, target_path("spin")}});
  REQUIRE(recorded.status() == 0);
  const TemporaryDirectory out;
  CommandResult result = run_sentry_prof(
      {"convert", file, "-o", out.file("out.json"), "--summary", out.file("summary.json")});
  INFO(result.standard_error);
  REQUIRE(result.status() == 0);
  check_spin(read_recording(out, std::move(result)));
}

TEST_CASE("The vdso of this kernel has its names, also where perf wrote no build ids",
          "[convert]") {
  SKIP_WITHOUT_PERF();
  const PerfRecording perf(with_stacks({"-z"}), {target_path("clocks"), "0.4"});
  const TemporaryDirectory directory;
  const Recording converted = convert(directory, perf);
  const LoadedProfile& profile = converted.profile();
  const auto is_vdso = [&](const LoadedFrame& frame) {
    return profile.code_file(frame).find("vdso") != std::string_view::npos;
  };
  CHECK(profile.share_with_frame(is_vdso) > 0.2);
  CHECK(converted.summary().share_complete() >= 0.98);
}

TEST_CASE("Processes that perf followed are told apart", "[convert]") {
  SKIP_WITHOUT_PERF();
  const PerfRecording perf(with_stacks({}),
                           {target_path("fork_exec"), "0.3", target_path("spin"), "0.4"});
  const TemporaryDirectory directory;
  const Recording converted = convert(directory, perf);
  CHECK(converted.summary().number("processes") >= 2);
  CHECK(converted.summary().share_complete() >= 0.95);
  CHECK(converted.profile().images_whose_file_contains("spin") == 1);
}

#ifdef __x86_64__
TEST_CASE("Code that a program compiled has the names of the map that it left", "[convert]") {
  SKIP_WITHOUT_PERF();
  const TemporaryDirectory directory;
  const std::string pid_path = directory.file("pid");
  const PerfRecording perf(with_stacks({}), {"sh", "-c", R"(echo $$ >"$0"; exec "$@")", pid_path,
                                             target_path("jit_code"), "0.5", "leaves"});
  const std::string pid = contents_of(pid_path);
  const fs::path map = "/tmp/perf-" + pid.substr(0, pid.find('\n')) + ".map";
  REQUIRE(fs::exists(map));
  const auto convert_with = [&](fs::file_time_type written_at) {
    fs::last_write_time(map, written_at);
    const TemporaryDirectory out;
    return convert(out, perf);
  };
  const auto written_at = fs::last_write_time(map);
  const Recording named = convert_with(written_at);
  CHECK(named.profile().share_containing("compiled_just_now") > 0.9);
  CHECK(named.profile().share_containing("burn_until") > 0.9);
  const Recording nameless = convert_with(written_at - std::chrono::hours(1));
  CHECK(nameless.profile().share_containing("compiled_just_now") == 0);
  check_says(nameless.result, "is not used: it is older than the program that ran");
  fs::remove(map);
}
#endif

TEST_CASE("A file that was replaced is not unwound with", "[convert]") {
  SKIP_WITHOUT_PERF();
  const TemporaryDirectory programs;
  const std::string program = programs.file("program");
  fs::copy_file(target_path("spin"), program);
  const PerfRecording perf(with_stacks({"-N"}), {program, "0.3"});
  fs::remove(program);
  fs::copy_file(target_path("syscalls"), program);
  const TemporaryDirectory directory;
  const Recording converted = convert(directory, perf);
  REQUIRE(converted.summary().texts("image_problems").size() == 1);
  CHECK(converted.summary().texts("image_problems")[0].find(program) == 0);
  CHECK(converted.profile().share_containing("main") == 0);
}

TEST_CASE("perf's own copy takes the place of a file that is gone", "[convert]") {
  SKIP_WITHOUT_PERF();
  const TemporaryDirectory programs;
  const std::string program = programs.file("program_spin");
  fs::copy_file(target_path("spin"), program);
  const PerfRecording perf(with_stacks({}), {program, "0.4"});
  fs::remove(program);
  const TemporaryDirectory directory;
  check_spin(convert(directory, perf));
}

TEST_CASE("What perf recorded without stacks is refused with the next step", "[convert]") {
  SKIP_WITHOUT_PERF();
  const TemporaryDirectory directory;
  const std::string out = directory.file("out.json");
  const PerfRecording chains({"-g"}, {target_path("spin"), "0.1"});
  check_refused({"convert", chains.path(), "-o", out}, 1, "--call-graph dwarf");
  const PerfRecording bare({}, {target_path("spin"), "0.1"});
  check_refused({"convert", bare.path(), "-o", out}, 1, "--call-graph dwarf");
  const PerfRecording timeless(with_stacks({"--per-thread"}), {target_path("spin"), "0.1"});
  check_refused({"convert", timeless.path(), "-o", out}, 1, "perf record -T");
  CHECK(files_in(directory) == 0);
}

TEST_CASE("An input is never its own output", "[convert]") {
  SKIP_WITHOUT_PERF();
  const PerfRecording perf(with_stacks({}), {target_path("spin"), "0.1"});
  const auto bytes = fs::file_size(perf.path());
  check_refused({"convert", perf.path(), "-o", perf.path()}, 2, "name of an output, too");
  check_refused({"convert", perf.path(), "-o", "/dev/null/x", "--summary", perf.path()}, 2,
                "name of an output, too");
  CHECK(fs::file_size(perf.path()) == bytes);
}

TEST_CASE("What cannot be converted is refused with a reason", "[convert]") {
  const TemporaryDirectory directory;
  const std::string out = directory.file("out.json"), text = directory.file("text");
  std::ofstream(text) << "{\"version\": \"2\"}";
  check_refused({"convert", text, "-o", out}, 1, "not a perf.data file");
  check_refused({"convert", sentry_prof_path(), "-o", out}, 1, "not a perf.data file");
  check_refused({"convert", "-", "-o", out}, 7, "cat > perf.data");
  check_refused({"convert", directory.path(), "-o", out}, 7, "--threads");
  check_refused({"convert", "/dev/zero", "-o", out}, 7, "not a regular file");
  const std::string fifo = directory.file("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  check_refused({"convert", fifo, "-o", out}, 7, "cat " + fifo);
  check_refused({"convert", directory.file("none"), "-o", out}, 7, "none");
  std::ofstream(text) << "";
  check_refused({"convert", text, "-o", out}, 1, "is empty");
  std::ofstream(text) << "PERF";
  check_refused({"convert", text, "-o", out}, 1, "too short");
  std::ofstream(text) << "PERFILE2";
  check_refused({"convert", text, "-o", out}, 1, "header is cut off");
  // What is wrong with OUT is told before IN is gone through, which may take minutes.
  check_refused({"convert", text, "-o", directory.file("none/out.json")}, 7, "none");
  CHECK_FALSE(exists(out));
}

TEST_CASE("Wrong usage of convert is told", "[convert]") {
  check_refused({"convert", "-o", "x"}, 2, "nothing to convert");
  check_refused({"convert", "perf.data"}, 2, "-o OUT");
  check_refused({"convert", "a.data", "b.data", "-o", "x"}, 2, "unexpected 'b.data'");
  check_refused({"convert", "perf.data", "-o", "x", "--to", "pprof"}, 2, "sentry-v2");
  check_refused({"convert", "perf.data", "-o", "x", "--from", "pprof"}, 2, "perf");
  check_refused({"convert", "perf.data", "-o", "x", "--release", "a/b"}, 2, "--release");
}
