#include "cli/chunk_files.h"

#include "support/catch2.h"
#include "unit/os/scratch.h"
#include "unit/sentry/test_profile.h"

#include <string>

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

}  // namespace sentry_prof::cli
