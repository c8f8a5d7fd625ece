#include "cli/chunk_outputs.h"

#include "os/fd.h"
#include "support/catch2.h"
#include "unit/os/scratch.h"
#include "unit/sentry/test_profile.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

class FakeUpload final : public ChunkUpload {
 public:
  Result<void> send_chunk(const Profile&, std::string_view json) override {
    if (is_failing) return fail(ErrorCode::Io, "the spool is full.");
    chunks.emplace_back(json);
    return {};
  }
  bool is_failing = false;
  std::vector<std::string> chunks;
};

std::string standard_error_of(const std::string& path, const std::function<void()>& act) {
  const os::Fd before(::dup(STDERR_FILENO));
  const os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ::dup2(file.get(), STDERR_FILENO);
  act();
  ::dup2(before.get(), STDERR_FILENO);
  return test::read_text(path);
}

Profile profile_of(const char* name) {
  Profile profile = testing::test_profile();
  profile.session.release = name;
  return profile;
}

}  // namespace

TEST_CASE("A chunk that could not be uploaded is in its file, and no later one replaces it") {
  const test::ScratchDirectory scratch;
  ChunkFiles files(scratch / "c.json", SentryFormat::V2);
  FakeUpload upload;
  ChunkOutputs outputs(SentryFormat::V2, &files, &upload);
  upload.is_failing = true;
  CHECK(outputs.write(profile_of("first"), 1));
  upload.is_failing = false;
  CHECK(outputs.write(profile_of("second"), 2));
  REQUIRE(files.written().size() == 2);
  CHECK(test::read_text(files.written()[0]).find("first") != std::string::npos);
  CHECK(test::read_text(files.written()[1]).find("second") != std::string::npos);
  CHECK(upload.chunks.size() == 1);
  CHECK(outputs.half_written().not_uploaded == 1);
  CHECK(outputs.half_written().first_error == "the spool is full.");
}

TEST_CASE("A chunk without a file is written if it could be uploaded, and lost otherwise") {
  const test::ScratchDirectory scratch;
  ChunkFiles files(scratch / "missing/c.json", SentryFormat::V2);
  FakeUpload upload;
  ChunkOutputs outputs(SentryFormat::V2, &files, &upload);
  CHECK(outputs.write(testing::test_profile(), 1));
  CHECK(outputs.half_written().not_in_files == 1);
  upload.is_failing = true;
  CHECK_FALSE(outputs.write(testing::test_profile(), 2));
  CHECK(outputs.half_written().not_uploaded == 0);
}

TEST_CASE("What is lost is told at once while the recording goes on, and else with the summary") {
  const test::ScratchDirectory scratch;
  ChunkFiles files(scratch / "missing/c.json", SentryFormat::V2);
  FakeUpload upload;
  ChunkOutputs outputs(SentryFormat::V2, &files, &upload);
  const bool is_recording = GENERATE(true, false);
  const std::string said = standard_error_of(scratch / "said", [&] {
    if (!is_recording) outputs.on_recording_end();
    outputs.on_loss("the disk is full");
    CHECK(outputs.write(testing::test_profile(), 1));
  });
  CHECK((said.find("the disk is full. The recording goes on.\n") != said.npos) == is_recording);
  CHECK((said.find("missing") != said.npos) == is_recording);
  CHECK(said.empty() == !is_recording);
}

TEST_CASE("A file that could not be written leaves no gap in the names") {
  const test::ScratchDirectory scratch;
  ChunkFiles files(scratch / "later/c.json", SentryFormat::V2);
  CHECK_FALSE(files.write(testing::test_profile(), 1));
  REQUIRE(::mkdir((scratch / "later").c_str(), 0700) == 0);
  CHECK(files.write(testing::test_profile(), 2));
  CHECK(files.written() == std::vector<std::string>{scratch / "later/c.json"});
}

}  // namespace sentry_prof::cli
