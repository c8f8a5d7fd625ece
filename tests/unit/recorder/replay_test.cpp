// The whole way from kernel records to a profile on stored recordings: tests/data/raw, made as
// docs/raw-log.md says. No kernel, no privileges.
#include "recorder/replay.h"

#include "os/file.h"
#include "recorder/register_mapping.h"
#include "recorder/summary.h"
#include "support/catch2.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <elf.h>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

class ReplayedProfiles final : public ChunkSink {
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

constexpr uint64_t kTooLarge_bytes = uint64_t{1} << 40;

// The last block of an ELF file, with constant sections (.eh_frame) larger than anybody reads.
std::vector<std::byte> with_huge_unwind_tables(Bytes first_block, Bytes last_block) {
  std::vector<std::byte> damaged(last_block.begin(), last_block.end());
  Elf64_Ehdr head;
  std::memcpy(&head, first_block.data(), sizeof head);
  for (size_t i = 0; i < head.e_shnum; ++i) {
    std::byte* place = damaged.data() + head.e_shoff % kRawBlock_bytes + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    std::memcpy(&section, place, sizeof section);
    if (section.sh_type != SHT_PROGBITS || section.sh_flags != SHF_ALLOC) continue;
    section.sh_size = kTooLarge_bytes;
    std::memcpy(place, &section, sizeof section);
  }
  return damaged;
}

}  // namespace

TEST_CASE("A stored recording of a static program gives its functions") {
  if (native_arch() != unwind::Arch::X86_64) return;  // records of that machine
  const std::string bytes = stored_log("spin.rawlog");
  const auto log = read_raw_log(std::as_bytes(std::span(bytes)));
  REQUIRE(log);
  ReplayedProfiles sink;
  const auto figures = replay(*log, {}, sink);
  REQUIRE(figures);
  CHECK(figures->broken_law().empty());
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

TEST_CASE("A file whose unwind tables cannot be read is one problem, and no unread file") {
  if (native_arch() != unwind::Arch::X86_64) return;
  const std::string bytes = stored_log("spin.rawlog");
  auto log = read_raw_log(std::as_bytes(std::span(bytes)));
  REQUIRE(log);
  REQUIRE(log->files.size() == 1);
  auto& blocks = log->files[0].blocks;
  const std::vector<std::byte> damaged = with_huge_unwind_tables(blocks.at(0), blocks.at(2));
  blocks[2] = damaged;
  log->files[0].size_bytes = 2 * kTooLarge_bytes;
  ReplayedProfiles sink;
  const auto figures = replay(*log, {}, sink);
  REQUIRE(figures);
  REQUIRE(figures->image_problems.size() == 1);
  CHECK(figures->image_problems[0].starts_with("/tmp/spin/spin: no unwind information: "));
  CHECK(summary_text(*figures, {}, false)
            .find("1 mapped file could not be read, or not its unwind tables: /tmp/spin/spin: no "
                  "unwind information: ") != std::string::npos);
}

TEST_CASE("A stored recording that was cut off anywhere is played up to there") {
  if (native_arch() != unwind::Arch::X86_64) return;
  const std::string bytes = stored_log("spin.rawlog");
  uint64_t previous = 0;
  for (size_t size = 0; size <= bytes.size(); size += bytes.size() / 40) {
    const auto log = read_raw_log(std::as_bytes(std::span(bytes).first(size)));
    if (!log) continue;
    ReplayedProfiles sink;
    const auto figures = replay(*log, {}, sink);
    REQUIRE(figures);
    CHECK(figures->broken_law().empty());
    CHECK(figures->sampler.sample_records >= previous);
    previous = figures->sampler.sample_records;
  }
  CHECK(previous == 24);
}
