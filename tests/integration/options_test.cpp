// What the options of `record` change in what is taken, and in what is said.
#include "command_line.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace sentry_prof::testing;

namespace {

std::optional<std::string> missing_cycles() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_CPU_CYCLES;
  attributes.sample_period = 1'000'000;
  attributes.exclude_kernel = 1;
  attributes.disabled = 1;
  const long fd = ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return std::string("no hardware counters: ") + std::strerror(errno);
  ::close(static_cast<int>(fd));
  return std::nullopt;
}

Recording record_spin(const TemporaryDirectory& directory, std::vector<std::string> options) {
  return record_well(directory,
                     {.options = std::move(options), .command = {target_path("spin"), "0.5"}});
}

}  // namespace

TEST_CASE("As much of the stack is copied as was asked for", "[options]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_spin(directory, {"--stack-bytes", "8192"});
  CHECK(recording.summary().number("stack_bytes") == 8192);
  CHECK(recording.profile().share_containing("alpha") > 0.3);
}

TEST_CASE("The event that was asked for drives the sampling", "[options]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording by_time = record_spin(directory, {"--event", "cpu-clock"});
  CHECK(by_time.summary().text("event") == "cpu-clock");
  CHECK_FALSE(contains(by_time.result.standard_error, "cycles"));
  if (const auto missing = missing_cycles()) return note_optional_skip(*missing);
  const Recording by_cycles = record_spin(directory, {"--event", "cycles"});
  CHECK(by_cycles.summary().text("event") == "cycles");
  CHECK(by_cycles.profile().share_containing("alpha") > 0.3);
}

TEST_CASE("Quietly nothing is said of a recording that went well", "[options]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record_spin(directory, {"-q"});
  CHECK(recording.result.standard_output.empty());
  CHECK(recording.result.standard_error.empty());
}

TEST_CASE("Verbosely the set-up and the profiler's own cost are said, too", "[options]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const bool is_verbose = GENERATE(false, true);
  const Recording recording = record_spin(
      directory, is_verbose ? std::vector<std::string>{"-v"} : std::vector<std::string>{});
  check_says(recording.result, "hottest functions");
  for (const char* head : {"  set-up    ", "  self      "}) {
    CHECK(contains(recording.result.standard_error, head) == is_verbose);
  }
}
