#include "cli/chunk_files.h"

#include "support/catch2.h"
#include "unit/os/scratch.h"
#include "unit/sentry/test_profile.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sentry_prof::cli {

TEST_CASE("A chunk that Sentry accepts is written") {
  const test::ScratchDirectory scratch;
  for (const SentryFormat format : {SentryFormat::V1, SentryFormat::V2}) {
    ChunkFiles files(scratch / "chunk.json", format);
    REQUIRE(files.write(testing::test_profile(), 1));
    CHECK(files.written() == std::vector<std::string>{scratch / "chunk.json"});
    CHECK(test::read_text(scratch / "chunk.json").starts_with('{'));
  }
}

TEST_CASE("A chunk that Sentry would refuse is not written, and the rule is told") {
  const test::ScratchDirectory scratch;
  Profile profile = testing::test_profile();
  profile.samples.resize(1);
  for (const SentryFormat format : {SentryFormat::V1, SentryFormat::V2}) {
    ChunkFiles files(scratch / "chunk.json", format);
    const auto written = files.write(profile, 3);
    REQUIRE_FALSE(written);
    CHECK(written.error().message.find("chunk 3 was not written") != std::string::npos);
    CHECK(written.error().message.find("profiling_not_enough_samples") != std::string::npos);
    CHECK(written.error().message.find("[enough-samples]") != std::string::npos);
    CHECK(written.error().message.find("Unless a --platform") != std::string::npos);
    CHECK(files.written().empty());
    CHECK(scratch.names().empty());
  }
}

TEST_CASE("Files that were there before are replaced, and known") {
  const test::ScratchDirectory scratch;
  test::write_text(scratch / "chunk.2.json", "of an earlier recording");
  ChunkFiles files(scratch / "chunk.json", SentryFormat::V2);
  for (uint32_t number = 1; number <= 3; ++number) {
    REQUIRE(files.write(testing::test_profile(), number));
  }
  CHECK(files.written().size() == 3);
  CHECK(files.replacing() == std::vector<std::string>{scratch / "chunk.2.json"});
  CHECK(files.left_by_earlier_run().empty());
  CHECK(test::read_text(scratch / "chunk.2.json").starts_with('{'));
}

TEST_CASE("A symbolic link is replaced, not followed, and that is known") {
  const test::ScratchDirectory scratch;
  const std::string link = scratch / "latest.json", target = scratch / "target.json";
  std::filesystem::create_symlink(target, link);
  ChunkFiles files(link, SentryFormat::V2);
  REQUIRE(files.write(testing::test_profile(), 1));
  CHECK(files.replacing() == std::vector<std::string>{link});
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(link)));
  CHECK_FALSE(std::filesystem::exists(target));
}

TEST_CASE("Files of an earlier, longer recording are known") {
  const test::ScratchDirectory scratch;
  for (const char* name : {"chunk.2.json", "chunk.3.json", "chunk.5.json"}) {
    test::write_text(scratch / name, "of an earlier recording");
  }
  ChunkFiles files(scratch / "chunk.json", SentryFormat::V2);
  REQUIRE(files.write(testing::test_profile(), 1));
  CHECK(files.left_by_earlier_run() ==
        std::vector<std::string>{scratch / "chunk.2.json", scratch / "chunk.3.json"});
  CHECK(ChunkFiles("-", SentryFormat::V2).left_by_earlier_run().empty());
}

TEST_CASE("A directory that was asked for is made again when a chunk is due") {
  const test::ScratchDirectory scratch;
  const std::string output = scratch / "profiles/";
  const std::string path = resolve_output(output, "job", 7, SentryFormat::V2);
  ChunkFiles files(path, SentryFormat::V2, output);
  REQUIRE(files.write(testing::test_profile(), 1));
  const auto permissions = std::filesystem::status(output).permissions();
  std::filesystem::rename(output, scratch / "taken");
  REQUIRE(files.write(testing::test_profile(), 2));
  CHECK(std::filesystem::status(output).permissions() == permissions);
  std::filesystem::remove_all(output);
  REQUIRE(files.write(testing::test_profile(), 3));
  CHECK(std::filesystem::exists(scratch / "profiles/job-7.v2.3.json"));

  ChunkFiles unasked(path, SentryFormat::V2, scratch / "profiles");
  std::filesystem::remove_all(output);
  CHECK_FALSE(unasked.write(testing::test_profile(), 1));
}

TEST_CASE("A target's name makes a file's name, however long it is") {
  CHECK(resolve_output("out/", "job", 7, SentryFormat::V2) == "out/job-7.v2.json");
  CHECK(resolve_output("", "job", 7, SentryFormat::V1) == "job-7.v1.json");
  CHECK(resolve_output("named.json", "job", 7, SentryFormat::V2) == "named.json");

  const test::ScratchDirectory scratch;
  const std::string longest(255, 'x');
  const std::string path = resolve_output(scratch / "", longest, 4194304, SentryFormat::V2);
  ChunkFiles files(path, SentryFormat::V2);
  REQUIRE(files.write(testing::test_profile(), 1));
  REQUIRE(files.write(testing::test_profile(), 2));
  CHECK(path.ends_with("\xe2\x80\xa6-4194304.v2.json"));
  CHECK(scratch.names().size() == 2);
}

}  // namespace sentry_prof::cli
