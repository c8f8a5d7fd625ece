// Programs on a file system for which a server is asked, and may not answer
// (tests/support/hanging_files.py).
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <signal.h>

using namespace sentry_prof::testing;

namespace {

class ServedFiles {
 public:
  ServedFiles() {
    std::filesystem::create_directory(directory_.file("folder"));
    std::filesystem::create_directory(directory_.file("mounted"));
    std::filesystem::copy_file(target_path("spin"), directory_.file("folder/spin"));
    server_ = std::make_unique<BackgroundProcess>(
        Command{.arguments = {"python3", "-B", SENTRY_PROF_HANGING_FILES, directory_.file("folder"),
                              directory_.file("mounted")}});
    is_mounted_ = server_->wait_for_output("mounted");
  }
  ServedFiles(const ServedFiles&) = delete;
  ServedFiles& operator=(const ServedFiles&) = delete;
  ~ServedFiles() {
    server_->send_signal(SIGTERM);  // unmounts
    server_->wait();
  }

  bool is_mounted() const { return is_mounted_; }
  std::string spin() const { return directory_.file("mounted/spin"); }
  void hang() const { server_->send_signal(SIGUSR1); }
  void answer_again() const { server_->send_signal(SIGUSR2); }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<BackgroundProcess> server_;
  bool is_mounted_ = false;
};

// It runs from there, and the server does not answer any more.
struct CutOffProgram {
  explicit CutOffProgram(const ServedFiles& files) : process({.arguments = {files.spin(), "60"}}) {
    sleep_for(0.5);
    files.hang();
  }
  BackgroundProcess process;
};

std::optional<std::string> missing_rights() {
  if (auto missing = missing_perf()) return missing;
  return missing_root();
}

}  // namespace

TEST_CASE("Files that a server is asked for are read like others", "[hanging]") {
  SKIP_IF(missing_rights());
  const ServedFiles files;
  if (!files.is_mounted()) return note_optional_skip("no FUSE");
  const TemporaryDirectory directory;
  const Recording recording = record_well(directory, {.command = {files.spin(), "1"}});
  CHECK(recording.summary().share_complete() > 0.99);
  CHECK(recording.profile().share_containing("spin_rounds") > 0.95);
  CHECK(recording.profile().images_whose_file_contains("mounted/spin") == 1);
  CHECK(recording.summary().number("file_requests_given_up") == 0);
}

TEST_CASE("A file system that answers again while its program is recorded is asked again",
          "[hanging]") {
  SKIP_IF(missing_rights());
  const ServedFiles files;
  if (!files.is_mounted()) return note_optional_skip("no FUSE");
  const TemporaryDirectory directory;
  const CutOffProgram target(files);
  BackgroundProcess profiler(
      record_command(directory, {.options = {"-d", "6"}, .pids = {target.process.pid()}}));
  sleep_for(3.5);  // longer than two questions are waited for, before the first event
  files.answer_again();
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == 0);
  CHECK(recording.summary().number("file_requests_given_up") > 0);
  CHECK(recording.summary().share_complete() > 0.3);
  CHECK(recording.profile().share_containing("spin_rounds") > 0.3);
}

TEST_CASE("A program whose file system does not answer is recorded, and holds up nobody",
          "[hanging]") {
  SKIP_IF(missing_rights());
  const ServedFiles files;
  if (!files.is_mounted()) return note_optional_skip("no FUSE");
  const TemporaryDirectory directory;
  const CutOffProgram target(files);
  BackgroundProcess profiler(record_command(directory, {.pids = {target.process.pid()}}));
  sleep_for(3.5);  // two questions are waited for before the first event
  profiler.send_signal(SIGINT);
  const bool has_ended = wait_until([&] { return !profiler.is_running(); }, 20);
  CHECK(has_ended);
  files.answer_again();
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == -SIGINT);
  CHECK(recording.summary().number("file_requests_given_up") > 0);
  CHECK(recording.summary().number("samples") > 100);
  CHECK(recording.profile().images_whose_file_contains("mounted/spin") == 1);
  CHECK(recording.result.standard_error.find("no answer in time") != std::string::npos);
  // Whoever waited for the answer has gone, too.
  CHECK(wait_until([&] { return ::kill(-profiler.pid(), 0) != 0 && errno == ESRCH; }));
}
