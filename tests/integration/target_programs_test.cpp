// Programs written to be profiled: what must be found is known.
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"
#include "text_file.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>

using namespace sentry_prof::testing;

namespace {

// Six standard deviations of a share of about one half, and what a busy machine adds.
double tolerance(const LoadedProfile& profile) {
  return 0.01 + 3 / std::sqrt(static_cast<double>(profile.busy_samples().size()));
}

void check_shares_of_spin(const LoadedProfile& profile) {
  const double margin = tolerance(profile);
  CHECK(profile.share_containing("alpha") == Approx(0.6).margin(margin));
  CHECK(profile.share_containing("beta") == Approx(0.3).margin(margin));
  CHECK(profile.share_containing("gamma") == Approx(0.1).margin(margin));
}

// Every address of the program's own stacks can be looked up.
void check_all_frames_have_images(const LoadedProfile& profile) {
  for (const LoadedFrame& frame : profile.frames) {
    INFO(frame.function << " at " << frame.address);
    CHECK(frame.image != LoadedFrame::kNoImage);
    CHECK_FALSE(frame.function.empty());
  }
}

// How often a function is in a stack.
size_t frames_of(const LoadedProfile& profile, const LoadedSample& sample, const char* function) {
  return static_cast<size_t>(std::ranges::count_if(
      sample.stack, [&](size_t frame) { return profile.frames[frame].function == function; }));
}

// Of a recording: no CAP_BPF, an old kernel, a container.
std::optional<std::string> refused_bpf(const Summary& summary) {
  if (summary.flag("copies_outer_stacks")) return std::nullopt;
  return "the kernel lets us have no BPF program";
}

}  // namespace

#ifdef __x86_64__
TEST_CASE("Code that a program compiled while it ran has the names that it tells perf", "[jit]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string when = GENERATE(std::string("tells"), std::string("late"));
  const Recording recording = record_well(
      directory,
      {.options = {"--chunk-seconds", "1"}, .command = {target_path("jit_code"), "2.5", when}});
  const auto is_named = [](const LoadedProfile& profile) {
    return profile.share_containing("compiled_just_now") > 0.9;
  };
  CHECK(is_named(recording.profile()) == (when == "tells"));
  CHECK(std::ranges::any_of(recording.profiles, is_named));
  CHECK(recording.profile().share_containing("burn_until") > 0.9);
  CHECK(recording.summary().share_complete() > 0.98);
  CHECK(recording.summary().number("jit_frames_named") > 0);
  CHECK(recording.summary().number("jit_map_bad_lines") == 0);
}

TEST_CASE("Code that a program names as the last thing that it does", "[jit]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string pid_path = directory.file("pid");
  const std::string script = GENERATE(std::string(R"(echo $$ >"$1"; exec "$0" 0.6 last)"),
                                      std::string(R"("$0" 0.6 last & echo $! >"$1"; wait)"));
  const Recording recording =
      record_well(directory, {.command = {"sh", "-c", script, target_path("jit_code"), pid_path}});
  const std::string pid = contents_of(pid_path);
  CHECK(std::filesystem::remove("/tmp/perf-" + pid.substr(0, pid.find('\n')) + ".map"));
  CHECK(recording.profile().share_containing("compiled_just_now") > 0.9);
}

TEST_CASE("Functions that call each other through code of the program's own making", "[jit]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("trampolines"), "1"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().share_complete() > 0.98);
  CHECK(recording.summary().number("frames_by_origin/code") >
        3.9 * recording.summary().number("samples"));
  const auto is_whole = [&](const LoadedSample& sample) {
    return frames_of(profile, sample, "by_trampoline") == 5;
  };
  CHECK(profile.share_of_samples(is_whole) > 0.95);
}

TEST_CASE("Code that nobody named is told of, with what would name it", "[jit]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("jit_code"), "0.5"}});
  CHECK(recording.profile().share_containing("compiled_just_now") == 0);
  CHECK(recording.summary().number("jit_frames") > 0);
  CHECK(recording.result.standard_error.find("--perf-basic-prof") != std::string::npos);
}
#endif

TEST_CASE("Known shares of time are found, leaf first", "[shares]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string format = GENERATE(std::string("v2"), std::string("v1"));
  const Recording recording =
      record_well(directory, {.command = {target_path("spin"), "1.5"}, .format = format});
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().number("samples") > 1000);
  CHECK(recording.summary().share_of_expected_samples() > 0.9);
  CHECK(recording.summary().share_complete() > 0.98);
  check_shares_of_spin(profile);
  check_all_frames_have_images(profile);

  const auto is_in_order = [&](const LoadedSample& sample) {
    const int rounds = profile.index_of(sample, "spin_rounds");
    const int main = profile.index_of(sample, "main");
    return rounds >= 0 && rounds < main && profile.root(sample) == "_start";
  };
  CHECK(profile.share_of_samples(is_in_order) > 0.97);
  const auto has_leaf_in_front = [&](const LoadedSample& sample) {
    return profile.contains(sample, "alpha") && profile.leaf(sample) == "alpha";
  };
  CHECK(profile.share_of_samples(has_leaf_in_front) > 0.4);
}

TEST_CASE("An idle marker stands only between samples more than two periods apart", "[idle]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("spin"), "2"}, .frequency_hz = "101"});
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.busy_samples().size() > 100);
  // It never sleeps, but on a busy machine it may have to wait for a CPU, a short while many times.
  constexpr int64_t kTwoPeriods_ns = 2'000'000'000 / 101;
  for (size_t i = 1; i + 1 < profile.samples.size(); ++i) {
    if (!profile.samples[i].stack.empty()) continue;
    CHECK_FALSE(profile.samples[i - 1].stack.empty());
    CHECK(profile.samples[i + 1].time_ns - profile.samples[i - 1].time_ns >=
          kTwoPeriods_ns - 10'000);
  }
}

TEST_CASE("Where a program sleeps there is an idle marker, and no work is drawn", "[idle]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("sleeper"), "2.4"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.idle_markers() >= 4);  // it sleeps six times
  CHECK(profile.share_containing("work_100_ms") > 0.9);

  // Sentry draws each sample until the thread's next one.
  double idle_s = 0;
  double busy_s = 0;
  for (size_t i = 0; i + 1 < profile.samples.size(); ++i) {
    const double length_s =
        static_cast<double>(profile.samples[i + 1].time_ns - profile.samples[i].time_ns) * 1e-9;
    (profile.samples[i].stack.empty() ? idle_s : busy_s) += length_s;
    // No stack is stretched over one of the 300 ms of sleep.
    if (!profile.samples[i].stack.empty()) CHECK(length_s < 0.15);
  }
  CHECK(idle_s > 1.0);
  CHECK(busy_s > 0.1);
}

TEST_CASE("Each busy thread shows its own function under its own name", "[threads]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("threads_named"), "1.5"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().number("threads") == 6);
  for (const std::string colour : {"red", "green", "blue"}) {
    INFO(colour);
    const auto ids = profile.threads_named("busy-" + colour);
    REQUIRE(ids.size() == 1);
    CHECK(profile.busy_samples(*ids.begin()).size() > 100);
    CHECK(profile.share_containing("burn_" + colour, *ids.begin()) > 0.97);
  }
  CHECK(recording.summary().share_complete() > 0.97);
}

TEST_CASE("Attaching finds the threads that were there, and their names", "[threads]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("threads_named"), "30"}});
  const auto all_run = [&] {
    return run_command({.arguments = {"sh", "-c", "cat /proc/$0/task/*/comm",
                                      std::to_string(target.pid())}})
               .standard_output.find("sleepy-two") != std::string::npos;
  };
  REQUIRE(wait_until(all_run));
  const Recording recording =
      record_well(directory, {.options = {"-d", "1"}, .pids = {target.pid()}});
  CHECK(target.is_running());
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().number("threads_attached") == 6);
  for (const std::string colour : {"red", "green", "blue"}) {
    INFO(colour);
    const auto ids = profile.threads_named("busy-" + colour);
    REQUIRE(ids.size() == 1);
    CHECK(profile.share_containing("burn_" + colour, *ids.begin()) > 0.97);
  }
  CHECK(recording.summary().share_complete() > 0.97);
}

TEST_CASE("2,000 short threads are all seen", "[churn]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  // Each works somewhat less than a millisecond. The kernel's clock starts anew with every thread,
  // so that one which ends within its first period has no sample: the period is a fifth of that.
  const Recording recording = record_well(
      directory, {.command = {target_path("thread_churn"), "2000"}, .frequency_hz = "4999"});
  CHECK(recording.result.standard_output == "2000 threads\n");
  CHECK(recording.summary().number("threads") == 2001);
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("churn_work") > 0.7);
  size_t with_work = 0;
  for (const std::string& id : profile.thread_ids()) {
    if (profile.share_containing("churn_work", id) > 0) ++with_work;
  }
  CHECK(with_work > 1500);
  CHECK(recording.summary().share_complete() > 0.95);
}

TEST_CASE("Libraries that come and go at one address do not take each other's names", "[dlopen]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("dlopen_loop"), "2"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("plugin_a_inner") > 0.25);
  CHECK(profile.share_containing("plugin_b_inner") > 0.25);
  CHECK(profile.share_containing("plugin_b_padding") < 0.02);
  const auto is_whole = [&](const LoadedSample& sample) {
    const int inner = std::max(profile.index_of(sample, "plugin_a_inner"),
                               profile.index_of(sample, "plugin_b_inner"));
    if (inner < 0) return true;
    const int run = profile.index_of(sample, "plugin_run");
    const int loader = profile.index_of(sample, "load_and_run");
    return inner == 0 && run == 1 && loader == 2 && profile.index_of(sample, "main") == 3;
  };
  CHECK(profile.share_of_samples(is_whole) > 0.98);
  CHECK(profile.images_whose_file_contains("plugin_a.so") == 1);
  CHECK(profile.images_whose_file_contains("plugin_b.so") == 1);
  CHECK(recording.summary().share_complete() > 0.97);
}

TEST_CASE("A handler on an alternate signal stack: the walk goes on in what it interrupted",
          "[altstack]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("altstack"), "1.5"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("burn_in_handler") > 0.15);
  const auto is_in_order = [&](const LoadedSample& sample) {
    const int burn = profile.index_of(sample, "burn_in_handler");
    if (burn < 0) return true;
    const int handler = profile.index_of(sample, "on_alarm");
    const int outside = profile.index_of(sample, "burn_outside");
    // Between the handler and what it interrupted lies the signal frame, and perhaps a clock.
    return handler == burn + 1 && outside > handler + 1;
  };
  CHECK(profile.share_of_samples(is_in_order) > 0.95);
  // A sample holds one stack: the other one's memory is not in it, and nothing is made up.
  const Summary& summary = recording.summary();
  CHECK(summary.number("samples_complete") + summary.number("walk_ends/other_stack") >
        0.95 * summary.number("samples"));
}

TEST_CASE("Deep recursion is whole within what the kernel copies", "[deep]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("deep"), "300", "0.6"}});
  const LoadedProfile& profile = recording.profile();
  const auto is_whole = [&](const LoadedSample& sample) {
    const size_t descents = frames_of(profile, sample, "descend");
    return descents == 301;
  };
  CHECK(profile.share_of_samples(is_whole) > 0.95);
  CHECK(recording.summary().share_complete() > 0.95);
}

TEST_CASE("A stack larger than what the kernel copies is completed from the process", "[deep]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("deep"), "200", "1.5", "2000"}});
  INFO(recording.result.standard_error);
  // For those of its last tenth of a second the program has ended before its memory can be read,
  // and on a busy machine for more.
  CHECK(recording.summary().share_complete() > 0.3);
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("burn_at_the_bottom") > 0.8);
  const auto is_whole_or_cut = [&](const LoadedSample& sample) {
    const int bottom = profile.index_of(sample, "burn_at_the_bottom");
    if (bottom < 0) return true;
    const size_t descents = frames_of(profile, sample, "descend");
    const bool has_main = profile.index_of(sample, "main") > bottom;
    return has_main ? descents == 201 : descents >= 20 && descents < 201;
  };
  CHECK(profile.share_of_samples(is_whole_or_cut) == 1.0);
}

TEST_CASE("Stacks larger than what a record holds that come and go are whole by BPF", "[deep]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const RecordArguments arguments{.command = {target_path("restless"), "1.5"},
                                  .frequency_hz = "499"};
  const Recording recording = record_well(directory, arguments);
  const Summary& summary = recording.summary();
  SKIP_IF(refused_bpf(summary));
  // Not before the first one was seen, and on a busy machine some find no room.
  CHECK(summary.number("samples_with_outer_stacks") > 0.3 * summary.number("samples"));
  const LoadedProfile& profile = recording.profile();
  // A stack has frames of one kind. What found no room may have been read later, of the other one.
  const auto is_of_one_moment = [&](const LoadedSample& sample) {
    const size_t left = frames_of(profile, sample, "left"),
                 right = frames_of(profile, sample, "right");
    return left == 0 || right == 0;
  };
  CHECK(profile.share_of_samples(is_of_one_moment) > 0.97);
  const auto is_whole_or_cut = [&](const LoadedSample& sample) {
    const bool has_main = profile.index_of(sample, "main") >= 0;
    const size_t frames = frames_of(profile, sample, "left") + frames_of(profile, sample, "right");
    return profile.index_of(sample, "work_at_the_bottom") < 0 || !has_main || frames == 6;
  };
  CHECK(profile.share_of_samples(is_whole_or_cut) == 1.0);

  const TemporaryDirectory other_directory;
  RecordArguments without = arguments;
  without.options = {"--no-bpf"};
  const Recording other = record_well(other_directory, without);
  CHECK_FALSE(other.summary().flag("copies_outer_stacks"));
  CHECK(other.summary().number("samples_with_outer_stacks") == 0);
  CHECK(other.summary().number("outer_stacks_missed") == 0);
}

TEST_CASE("Deep recursion of small frames is walked to its root", "[deep]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(
      directory, {.command = {target_path("deep"), "10000", "1.5"}, .frequency_hz = "49"});
  const Summary& summary = recording.summary();
  CHECK(summary.share_complete() > 0.3);  // as above
  CHECK(summary.number("frames_left_out") > 7000 * summary.number("samples_complete"));
  const LoadedProfile& profile = recording.profile();
  const auto is_whole_or_cut = [&](const LoadedSample& sample) {
    if (profile.index_of(sample, "burn_at_the_bottom") < 0) return true;
    return profile.index_of(sample, "main") > 2000 || sample.stack.size() < 2048;
  };
  CHECK(profile.share_of_samples(is_whole_or_cut) == 1.0);
}

TEST_CASE("A frame larger than what the kernel copies has its callers", "[deep]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("deep"), "2", "1.5", "200000"}});
  INFO(recording.result.standard_error);
  // Not before the process was looked at once, nor when it has ended, nor while nobody has a CPU to
  // look at it.
  CHECK(recording.summary().share_complete() > 0.3);
  const LoadedProfile& profile = recording.profile();
  const auto is_whole_or_cut = [&](const LoadedSample& sample) {
    if (profile.index_of(sample, "burn_at_the_bottom") < 0) return true;
    const size_t descents = frames_of(profile, sample, "descend");
    return profile.index_of(sample, "main") >= 0 ? descents == 3 : descents == 1;
  };
  CHECK(profile.share_of_samples(is_whole_or_cut) == 1.0);
}

TEST_CASE("A stack whose pages never come is recorded as far as it is there, and holds up nobody",
          "[deep]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("missing_pages"), "60"}});
  if (!target.wait_for_output("lost")) {
    REQUIRE(target.wait().status() == 2);
    return note_optional_skip("userfaultfd(2) is not permitted for accesses of the kernel's");
  }
  BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
  sleep_for(2.0);
  profiler.send_signal(SIGINT);
  for (int i = 0; i < 200 && profiler.is_running(); ++i) sleep_for(0.1);
  CHECK_FALSE(profiler.is_running());
  profiler.send_signal(SIGKILL);
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == -SIGINT);
  REQUIRE(recording.profiles.size() == 1);
  CHECK(recording.profile().share_containing("leaf") > 0.9);
  CHECK(recording.summary().number("memory_reads_given_up") > 0);
  CHECK(recording.summary().number("samples_truncated") >
        0.9 * recording.summary().number("samples"));
}

TEST_CASE("Time in the vdso belongs to a whole stack", "[vdso]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("clocks"), "1"}});
  const LoadedProfile& profile = recording.profile();
  const auto is_vdso = [&](const LoadedFrame& frame) {
    return profile.code_file(frame).find("vdso") != std::string_view::npos;
  };
  CHECK(profile.share_with_frame(is_vdso) > 0.2);
  CHECK(profile.share_containing("read_clocks") > 0.95);
  CHECK(recording.summary().share_complete() > 0.95);
}

TEST_CASE("Time in read() belongs to the function that called it", "[syscalls]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("syscalls"), "1"}});
  if (recording.summary().flag("kernel_excluded")) {
    note_skip("the kernel does not let us sample in kernel mode");
    return;
  }
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("read_zeros") > 0.95);
  CHECK(recording.summary().share_complete() > 0.97);
  CHECK(recording.summary().share_of_expected_samples() > 0.9);
}
