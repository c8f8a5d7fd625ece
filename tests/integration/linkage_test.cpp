// How a program was built and linked decides what can be known of it.
#include "elf_identity.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

using namespace sentry_prof::testing;

namespace {

Recording record_variant(const TemporaryDirectory& directory, const std::string& name) {
  return record_well(directory, {.command = {target_path(name), "0.8"}});
}

const LoadedImage& image_of(const LoadedProfile& profile, const std::string& name) {
  const auto found =
      std::find_if(profile.images.begin(), profile.images.end(),
                   [&](const LoadedImage& image) { return image.code_file.ends_with("/" + name); });
  REQUIRE(found != profile.images.end());
  return *found;
}

void check_identity(const LoadedProfile& profile, const std::string& name) {
  const ElfIdentity expected = identity_by_the_documented_rule(target_path(name));
  CHECK(image_of(profile, name).debug_id == expected.debug_id);
  CHECK(image_of(profile, name).code_id == expected.code_id);
}

double margin_of(const LoadedProfile& profile) {
  return 0.01 + 3 / std::sqrt(static_cast<double>(profile.busy_samples().size()));
}

// Largest first.
std::vector<double> shares_of_leaves(const LoadedProfile& profile) {
  std::map<std::string, double> counts;
  for (const LoadedSample* sample : profile.busy_samples()) ++counts[profile.leaf(*sample)];
  std::vector<double> shares;
  for (const auto& [name, count] : counts) {
    shares.push_back(count / static_cast<double>(profile.busy_samples().size()));
  }
  std::sort(shares.rbegin(), shares.rend());
  return shares;
}

void check_shares(const LoadedProfile& profile) {
  const double margin = margin_of(profile);
  CHECK(profile.share_containing("alpha") == Approx(0.6).margin(margin));
  CHECK(profile.share_containing("beta") == Approx(0.3).margin(margin));
  CHECK(profile.share_containing("gamma") == Approx(0.1).margin(margin));
}

// Every stack leads to main and further to where the process started.
void check_wholeness(const Recording& recording) {
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().share_complete() > 0.95);
  CHECK(profile.share_containing("main") > 0.95);
  CHECK(profile.share_containing("spin_rounds") > 0.95);
}

}  // namespace

TEST_CASE("Programs with CFI of every kind, and without, are walked to their root", "[linkage]") {
  SKIP_IF(missing_perf());
  const std::string name =
      GENERATE(std::string("spin"), std::string("spin_static"), std::string("spin_no_eh_frame_hdr"),
               std::string("spin_no_build_id"), std::string("spin_frame_pointers"),
               std::string("spin_debug_frame"), std::string("spin_packed_debug_frame"),
               std::string("spin_no_cfi"));
  INFO(name);
  const TemporaryDirectory directory;
  const Recording recording = record_variant(directory, name);
  check_wholeness(recording);
  check_shares(recording.profile());
  check_identity(recording.profile(), name);
}

TEST_CASE("A program without a build id is identified by its code", "[linkage]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_variant(directory, "spin_no_build_id");
  const LoadedImage& image = image_of(recording.profile(), "spin_no_build_id");
  CHECK(image.code_id.empty());
  CHECK(image.debug_id.size() == 36);
  CHECK(image.debug_id != "00000000-0000-0000-0000-000000000000");
}

TEST_CASE("Without CFI the code is read, and frames are counted as found so", "[linkage]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_variant(directory, "spin_no_cfi");
  CHECK(recording.summary().number("frames_by_origin/code") >
        recording.summary().number("samples"));
}

TEST_CASE("MiniDebugInfo gives a stripped program its names and unwind tables", "[linkage]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("objcopy"));
  SKIP_IF(missing_program("xz"));
  const TemporaryDirectory directory;
  const Recording recording = record_variant(directory, "spin_mini_debug_info");
  check_wholeness(recording);
  check_shares(recording.profile());
  CHECK(recording.summary().number("images_with_debug_cfi") == 1);
}

#ifdef __x86_64__
TEST_CASE("A stack whose first frame was laid out by hand is walked to it", "[linkage]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("fibers"), "1"}});
  CHECK(recording.summary().share_complete() > 0.95);
  CHECK(recording.profile().share_containing("work_in_fiber") > 0.9);
  CHECK(recording.profile().share_containing("fiber_end") > 0.9);  // not of what stands before it
  CHECK(recording.profile().share_containing("main") < 0.1);
}
#endif

#ifdef __x86_64__
TEST_CASE("Functions that do not return, without unwind tables, are walked to the root",
          "[linkage]") {
  SKIP_IF(missing_perf());
  for (const char* program : {"applets", "applets_static"}) {
    for (const char* applet : {"sort_applet", "burn_applet"}) {
      INFO(program << " " << applet);
      const TemporaryDirectory directory;
      std::vector<std::string> command{target_path(program), "0.5"};
      if (applet == std::string("burn_applet")) command.push_back("burn");
      const Recording recording = record_well(directory, {.command = command});
      CHECK(recording.summary().share_complete() > 0.95);
      CHECK(recording.profile().share_containing(applet) > 0.9);
      CHECK(recording.profile().share_containing("run_and_exit") > 0.95);
      CHECK(recording.profile().share_containing("main") > 0.95);
    }
  }
}
#endif

#ifdef __x86_64__
TEST_CASE("Realigned stacks and signal handlers, without unwind tables, are walked to the root",
          "[linkage]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("realigned"), "1"}});
  CHECK(recording.summary().share_complete() > 0.95);
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("below_realigned") > 0.2);
  CHECK(profile.share_containing("send_signals") > 0.4);
  CHECK(profile.share_containing("run_round") > 0.95);
  CHECK(profile.share_containing("main") > 0.95);
}
#endif

TEST_CASE("Threads of musl are walked to their root", "[linkage]") {
  SKIP_IF(missing_perf());
  if (const auto missing = missing_program("musl-gcc")) return note_optional_skip(*missing);
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("threads_musl"), "1"}});
  CHECK(recording.summary().share_complete() > 0.99);
  CHECK(recording.profile().share_containing("start") > 0.99);  // musl's first function of a thread
}

TEST_CASE("Code of musl is walked to the root, as is code without any unwind tables", "[linkage]") {
  SKIP_IF(missing_perf());
  if (const auto missing = missing_program("musl-gcc")) return note_optional_skip(*missing);
  for (const char* program : {"callbacks_musl", "callbacks_musl_shared"}) {
    INFO(program);
    const TemporaryDirectory directory;
    const Recording recording = record_well(directory, {.command = {target_path(program), "1"}});
    CHECK(recording.summary().share_complete() > 0.95);
    CHECK(recording.profile().share_containing("main") > 0.95);
    CHECK(recording.profile().share_containing("compare") > 0.02);
    CHECK(recording.summary().number("frames_by_origin/code") > 0);
  }
}

TEST_CASE("A signal handler of musl was called by what it interrupted", "[linkage]") {
  SKIP_IF(missing_perf());
  if (const auto missing = missing_program("musl-gcc")) return note_optional_skip(*missing);
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("signals_musl"), "1"}});
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().share_complete() > 0.95);
  CHECK(profile.share_containing("burn_in_handler") > 0.15);
  CHECK(profile.share_containing("burn_outside") > 0.95);
}

TEST_CASE("Goroutines are walked to their root", "[linkage]") {
  SKIP_IF(missing_perf());
  if (const auto missing = missing_program("go")) return note_optional_skip(*missing);
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("go_work"), "1"}});
  CHECK(recording.summary().share_complete() > 0.98);
  CHECK(recording.profile().share_containing("main.work") > 0.95);
}

TEST_CASE("What Go's runtime does on other stacks was called by goroutines", "[linkage]") {
  SKIP_IF(missing_perf());
  if (const auto missing = missing_program("go")) return note_optional_skip(*missing);
  const TemporaryDirectory directory;
  const Recording recording =
      record_well(directory, {.command = {target_path("go_allocates"), "1"}});
  CHECK(recording.summary().share_complete() > 0.95);
  const LoadedProfile& profile = recording.profile();
  const auto share_in =
      [&](std::string_view function) {  // with a suffix for its calling convention
        return profile.share_with_frame(
            [&](const LoadedFrame& frame) { return frame.function.starts_with(function); });
      };
  CHECK(share_in("runtime.systemstack") > 0.02);
  // Left over on the stack of the first thread, from before its scheduler began.
  CHECK(share_in("runtime.newproc.") < 0.005);
  const auto is_called = [&](const LoadedSample& sample) {
    const LoadedFrame& outermost = profile.frames[sample.stack.back()];
    return !outermost.function.starts_with("runtime.systemstack");
  };
  CHECK(profile.share_of_samples(is_called) > 0.98);
  // Its caller has no frame yet: nothing leads from it to both of the next two.
  const auto stack_grows_outermost = [&](const LoadedSample& sample) {
    const auto grows = [&](size_t frame) {
      return profile.frames[frame].function.starts_with("runtime.morestack.");
    };
    return std::find_if(sample.stack.begin(), sample.stack.end(), grows) + 1 >= sample.stack.end();
  };
  CHECK(profile.share_of_samples(stack_grows_outermost) > 0.999);

  const TemporaryDirectory other;
  const Recording stripped =
      record_well(other, {.command = {target_path("go_allocates_stripped"), "1"}});
  CHECK(stripped.summary().share_complete() > 0.95);
  CHECK(stripped.summary().number("frames_by_origin/kernel_chain") > 0);
  CHECK(stripped.summary().number("frames_by_origin/code") == 0);
  CHECK(stripped.profile().share_containing("main.grow") > 0.5);
}

TEST_CASE("C code that Go calls has its callers in Go", "[linkage]") {
  SKIP_IF(missing_perf());
  if (const auto missing = missing_program("go")) return note_optional_skip(*missing);
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {target_path("go_calls_c"), "3"}});
  CHECK(recording.summary().number("samples_with_live_frames") > 0);
  const LoadedProfile& profile = recording.profile();
  const auto share_with = [&](std::string_view function, std::string_view caller) {
    return profile.share_of_samples([&](const LoadedSample& sample) {
      const auto has = [&](std::string_view name) {
        return std::ranges::any_of(
            sample.stack, [&](size_t frame) { return profile.frames[frame].function == name; });
      };
      return has(function) && has(caller);
    });
  };
  // Nothing without the goroutine's stack: qsort uses the frame pointer. How many depends on
  // chance: each function is to be met by eight looks at the stack.
  CHECK(share_with("sort_first", "main.first") + share_with("sort_second", "main.second") > 0.3);
  CHECK(share_with("sort_first", "main.second") == 0);
  CHECK(share_with("sort_second", "main.first") == 0);
  CHECK(profile.share_containing("runtime.cgocall") > 0.3);
}

TEST_CASE("A stripped program has whole stacks of module names and offsets", "[linkage]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_variant(directory, "spin_stripped");
  const LoadedProfile& profile = recording.profile();
  CHECK(recording.summary().share_complete() > 0.95);
  check_identity(profile, "spin_stripped");
  const auto is_three_of_spin = [&](const LoadedSample& sample) {
    const auto count = std::count_if(sample.stack.begin(), sample.stack.end(), [&](size_t index) {
      return profile.frames[index].function.starts_with("spin_stripped+0x");
    });
    return count >= 3;  // alpha, spin_rounds, main
  };
  CHECK(profile.share_of_samples(is_three_of_spin) > 0.9);
}

TEST_CASE("A stripped program's functions are named each by its begin", "[linkage]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_variant(directory, "spin_stripped");
  const LoadedProfile& profile = recording.profile();
  const std::vector<double> shares = shares_of_leaves(profile);
  REQUIRE(shares.size() >= 3);
  CHECK(shares[0] == Approx(0.6).margin(margin_of(profile)));
  CHECK(shares[1] == Approx(0.3).margin(margin_of(profile)));
  CHECK(shares[2] == Approx(0.1).margin(margin_of(profile)));
}
