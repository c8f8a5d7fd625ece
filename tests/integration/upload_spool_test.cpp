// What `sentry-prof upload --spool` keeps, sends and tells.
#include "prerequisites.h"
#include "process.h"
#include "sentry_server.h"
#include "support/catch2.h"
#include "temporary_directory.h"
#include "upload_runs.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>

using namespace sentry_prof::testing;

TEST_CASE("An envelope that a disk has damaged is told by the exit code", "[upload]") {
  const SentryServer server("[503]");
  const TemporaryDirectory directory;
  std::vector<std::string> send = {"upload",        "--dsn", server.dsn(kKey), "--spool", "spool",
                                   "--max-retries", "0",     golden("v2")};
  CHECK(run_sentry_prof(send, directory).status() == 6);
  for (const auto& entry : std::filesystem::directory_iterator(directory.path() + "/spool")) {
    if (entry.path().extension() == ".envelope") std::ofstream(entry.path()) << "x";
  }
  send.pop_back();
  const auto damaged = run_sentry_prof(send, directory);
  CHECK(damaged.status() == 7);
  CHECK(contains(damaged.standard_error, "1 damaged, set aside"));
}

TEST_CASE("With a spool nothing is lost while the server is away", "[upload]") {
  // Two envelopes, two runs: each failure is taken for the envelope's, as long as few fail in a
  // row.
  const SentryServer server("[503, 503, 503, 503, 200]");
  const TemporaryDirectory directory;
  const std::vector<std::string> send = {"upload",  "--dsn",      server.dsn(kKey),
                                         "--spool", "spool",      "--max-retries",
                                         "0",       golden("v1"), golden("v2")};
  const auto away = run_sentry_prof(send, directory);
  CHECK(away.status() == 6);
  CHECK(contains(away.standard_error, "2 left in spool"));
  const std::vector<std::string> rest(send.begin(), send.end() - 2);
  CHECK(run_sentry_prof(rest, directory).status() == 6);
  CHECK(files_in(directory.path() + "/spool") == 2);
  CHECK(run_sentry_prof(rest, directory).status() == 0);
  CHECK(files_in(directory.path() + "/spool") == 0);
  const auto empty = run_sentry_prof(rest, directory);
  CHECK(empty.status() == 0);
  CHECK(empty.standard_error == "sentry-prof: nothing waits in spool.\n");
  CHECK(server.requests().size() == 6);
}

TEST_CASE("What another process has not sent yet is not done", "[upload]") {
  const SentryServer server(R"([{"status": 200, "delay": 3}, {"status": 200, "delay": 6}])");
  const TemporaryDirectory directory;
  const std::vector<std::string> send = {"upload", "--dsn", server.dsn(kKey), "--spool", "spool"};
  std::vector<std::string> with_files = send;
  with_files.insert(with_files.end(), {golden("v1"), golden("v2")});
  BackgroundProcess first(sentry_prof_in(directory, with_files));
  // It sends the one, so that the other process takes the other.
  REQUIRE(wait_until([&] {
    return std::filesystem::exists(directory.file("spool")) &&
           files_in(directory.file("spool")) == 2;
  }));
  sleep_for(0.5);
  BackgroundProcess second(sentry_prof_in(directory, send));
  const auto result = without_key(first.wait(30));
  INFO(result.standard_error);
  CHECK(result.status() == 6);
  CHECK(contains(result.standard_error, "1 left in spool"));
  CHECK(without_key(second.wait(30)).status() == 0);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("A spool to send from that is not there is an error, and is not made", "[upload]") {
  const TemporaryDirectory directory;
  const auto result = run_sentry_prof(
      {"upload", "--dsn", "http://" + kKey + "@127.0.0.1:1/42", "--spool", "typo"}, directory);
  INFO(result.standard_error);
  CHECK(result.status() == 7);
  CHECK(contains(result.standard_error, "typo: ENOENT"));
  CHECK(files_in(directory.path()) == 0);
}

TEST_CASE("What a full disk does not take into a spool is sent all the same", "[upload]") {
  SKIP_IF(missing_root());
  SKIP_IF(missing_mount_namespace());
  const bool is_away = GENERATE(false, true);
  const SentryServer server(is_away ? "[503]" : "[200]");
  const TemporaryDirectory directory;
  const std::string script = "mount -t tmpfs -o size=64k none '" + directory.path() +
                             "'; mkdir -m 700 '" + directory.path() +
                             "/spool'; head -c 100000 /dev/zero 2>&- >'" + directory.path() +
                             "/filling'; exec \"$@\"";
  Command upload =
      sentry_prof_in(directory, {"upload", "--dsn", server.dsn(kKey), "--max-retries", "0",
                                 "--spool", directory.path() + "/spool", golden("v2")});
  upload.arguments.insert(upload.arguments.begin(), {"unshare", "-m", "sh", "-c", script, "sh"});
  const auto result = without_key(run_command(upload));
  INFO(result.standard_error);
  CHECK(contains(result.standard_error, "No space left"));
  CHECK(result.status() == (is_away ? 7 : 0));
  CHECK(server.requests().size() == 1);
}

TEST_CASE("A spool that cannot be written to is refused before anything is sent", "[upload]") {
  SKIP_IF(missing_root());
  SKIP_IF(missing_mount_namespace());
  const SentryServer server("[503, 200]");
  const TemporaryDirectory directory;
  const std::vector<std::string> send = {"upload",        "--dsn", server.dsn(kKey), "--spool", "s",
                                         "--max-retries", "0"};
  std::vector<std::string> keep = send;
  keep.push_back(golden("v2"));
  CHECK(run_sentry_prof(keep, directory).status() == 6);
  REQUIRE(files_in(directory.file("s")) == 1);
  Command upload = sentry_prof_in(directory, send);
  const std::string script = "mount --bind s s && mount -o remount,bind,ro s && exec \"$@\"";
  upload.arguments.insert(upload.arguments.begin(), {"unshare", "-m", "sh", "-c", script, "sh"});
  const auto result = without_key(run_command(upload));
  INFO(result.standard_error);
  CHECK(result.status() == 7);
  CHECK(contains(result.standard_error, "cannot use the spool s: EROFS: Read-only file system"));
  CHECK(contains(result.standard_error, "Name a directory"));
  CHECK(server.requests().size() == 1);
}
