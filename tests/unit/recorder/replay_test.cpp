// The whole way from kernel records to a profile on stored recordings: tests/data/raw, made as
// docs/raw-log.md says. No kernel, no privileges.
#include "recorder/replay.h"

#include "os/file.h"
#include "recorder/register_mapping.h"
#include "support/catch2.h"

#include <map>
#include <string>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

class KeepingSink final : public ChunkSink {
 public:
  Result<void> write(const Profile& profile, uint32_t) override {
    profiles.push_back(profile);
    return {};
  }
  std::vector<Profile> profiles;
};

std::string stored_log(const std::string& name) {
  auto bytes = os::read_small_file(std::string(SENTRY_PROF_TEST_DATA) + "/raw/" + name);
  REQUIRE(bytes);
  return std::move(*bytes);
}

std::string names_of(const Profile& profile, const Sample& sample) {
  std::string names;
  for (uint32_t frame : profile.stack(sample.stack)) names += profile.frames[frame].function + " ";
  return names;
}

}  // namespace

TEST_CASE("A stored recording of a static program gives its functions") {
  if (native_arch() != unwind::Arch::X86_64) return;  // records of that machine
  const std::string bytes = stored_log("spin.rawlog");
  const auto log = read_raw_log(std::as_bytes(std::span(bytes)));
  REQUIRE(log);
  KeepingSink sink;
  const auto figures = replay(*log, {}, sink);
  REQUIRE(figures);
  std::string why;
  CHECK(figures->law_holds(&why));
  CHECK(figures->samples_written == 24);
  CHECK(figures->samples_complete() == 24);
  CHECK(figures->image_problems.empty());
  REQUIRE(sink.profiles.size() == 1);

  const Profile& profile = sink.profiles[0];
  REQUIRE(profile.images.size() == 1);
  CHECK(profile.images[0].code_file == "/tmp/spin/spin");
  CHECK(profile.session.release == "spin@561020a07141");
  std::map<std::string, int> stacks;
  for (const Sample& sample : profile.samples) {
    if (!profile.stack(sample.stack).empty()) ++stacks[names_of(profile, sample)];
  }
  CHECK(stacks.size() == 3);
  CHECK(stacks["alpha spin_rounds run _start "] == 15);
  CHECK(stacks["beta spin_rounds run _start "] == 7);
  CHECK(stacks["gamma spin_rounds run _start "] == 2);
}

TEST_CASE("A stored recording that was cut off anywhere is played up to there") {
  if (native_arch() != unwind::Arch::X86_64) return;
  const std::string bytes = stored_log("spin.rawlog");
  uint64_t previous = 0;
  for (size_t size = 0; size <= bytes.size(); size += bytes.size() / 40) {
    const auto log = read_raw_log(std::as_bytes(std::span(bytes).first(size)));
    if (!log) continue;
    KeepingSink sink;
    const auto figures = replay(*log, {}, sink);
    REQUIRE(figures);
    std::string why;
    CHECK(figures->law_holds(&why));
    CHECK(figures->sampler.sample_records >= previous);
    previous = figures->sampler.sample_records;
  }
  CHECK(previous == 24);
}
