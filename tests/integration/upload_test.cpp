// `sentry-prof upload` as its users call it, against a scripted server: exit codes,
// what arrives, what is kept, and that the key is in no output.
#include "prerequisites.h"
#include "process.h"
#include "sentry_prof/validate.h"
#include "sentry_server.h"
#include "support/address_sanitizer.h"
#include "support/catch2.h"
#include "temporary_directory.h"
#include "text_file.h"
#include "upload_runs.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof::testing;
using sentry_prof::validate;

namespace {

// Uploads golden_v2 without further tries to a server with this script.
CommandResult upload_against(const std::string& script) {
  const SentryServer server(script);
  const TemporaryDirectory directory;
  return run_sentry_prof({"upload", "--dsn", server.dsn(kKey), "--max-retries", "0", golden("v2")},
                         directory);
}

}  // namespace

TEST_CASE("Every outcome has its exit code and its sentence", "[upload]") {
  struct Case {
    const char* script;
    int status;
    const char* sentence;
  };
  const Case cases[] = {
      {"[200]", 0, "accepted by 127.0.0.1"},
      {"[400]", 1, "refused it (HTTP 400"},
      {"[302]", 2, "redirects elsewhere"},
      {"[401]", 3, "does not accept the DSN"},
      {"[403]", 3, "does not accept the DSN"},
      {"[413]", 4, "too large"},
      {"[429]", 5, "wants no more of this"},
      {"[500]", 6, "failed (HTTP 500"},
      {R"([{"do": "close"}])", 6, "did not answer as it should"},
      {R"([{"do": "garbage"}])", 6, "127.0.0.1"},
  };
  for (const Case& one : cases) {
    INFO(one.script);
    const CommandResult result = upload_against(one.script);
    INFO(result.standard_error);
    CHECK(result.status() == one.status);
    CHECK(contains(result.standard_error, one.sentence));
  }
}

TEST_CASE("A server that quotes the key back does not get it printed", "[upload]") {
  upload_against(R"([{"status": 400, "body": "bad key )" + kKey +
                 R"(", "headers": {"X-Sentry-Error": "key )" + kKey + R"( unknown"}}])");
}

TEST_CASE("What fails for a moment is tried again", "[upload]") {
  const SentryServer server(R"([503, {"do": "reset"}, 200])");
  const TemporaryDirectory directory;
  const auto result =
      run_sentry_prof({"upload", "--dsn", server.dsn(kKey), golden("v2")}, directory);
  CHECK(result.status() == 0);
  const auto requests = server.requests();
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].body == requests[2].body);
}

TEST_CASE("An invalid file is not sent and its problems are shown", "[upload]") {
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/bad.json") << R"({"version":"2","profile":{}})";
  const std::vector<std::string> upload = {"upload", "--dsn", server.dsn(kKey), "bad.json"};
  const auto result = run_sentry_prof(upload, directory);
  CHECK(result.status() == 1);
  CHECK(contains(result.standard_error, "error:"));
  CHECK(contains(result.standard_error, "was not sent"));
  CHECK(server.requests().empty());
}

TEST_CASE("A file above the server's limit is told without an option of validate's", "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("large.json")) << "{}";
  std::filesystem::resize_file(directory.file("large.json"), 51 * 1024 * 1024);
  const auto upload = run_sentry_prof(
      {"upload", "--dsn", "http://" + kKey + "@127.0.0.1:1/42", "large.json"}, directory);
  INFO(upload.standard_error);
  CHECK(upload.status() == 4);
  CHECK(contains(upload.standard_error, "50 MiB"));
  CHECK_FALSE(contains(upload.standard_error, "size-limit"));
  const auto validated = run_sentry_prof({"validate", "large.json"}, directory);
  CHECK(contains(validated.standard_output, "(--no-size-limit judges it all the same)"));
}

TEST_CASE("A file that takes more memory than there is does not keep the next from being sent",
          "[upload]") {
  if (kAddressSanitizer) return;  // no limit of the address space leaves it any
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  std::ofstream(directory.file("huge")) << "{}\n{\"type\":\"profile\"}\n{}";
  std::filesystem::resize_file(directory.file("huge"), 190 * 1024 * 1024);
  Command command =
      sentry_prof_in(directory, {"upload", "--dsn", server.dsn(kKey), "huge", golden("v2")});
  command.arguments.insert(command.arguments.begin(),
                           {"sh", "-c", "ulimit -v 180000; exec \"$0\" \"$@\""});
  const auto result = without_key(run_command(command));
  INFO(result.standard_error);
  CHECK(result.status() == 7);
  CHECK(contains(result.standard_error, "huge: out of memory"));
  CHECK(server.requests().size() == 1);
}

TEST_CASE("Nothing larger than an envelope may be is read, --no-validate or not", "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("large.json")) << "{}";
  const std::vector<std::string> upload = {"upload", "--dry-run",     "-o",
                                           "out",    "--no-validate", "large.json"};
  std::filesystem::resize_file(directory.file("large.json"), 201 * 1024 * 1024);
  const auto result = run_sentry_prof(upload, directory);
  INFO(result.standard_error);
  CHECK(result.status() == 4);
  CHECK(contains(result.standard_error, "large.json: is larger than 200 MiB"));
  CHECK(contains(result.standard_error, "--chunk-seconds"));
  std::filesystem::resize_file(directory.file("large.json"), 51 * 1024 * 1024);
  CHECK_FALSE(contains(run_sentry_prof(upload, directory).standard_error, "MiB"));
}

TEST_CASE("Several files give the highest exit code, and the good ones are sent", "[upload]") {
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/bad.json") << "{}";
  const auto result = run_sentry_prof(
      {"upload", "--dsn", server.dsn(kKey), "missing.json", "bad.json", golden("v1"), golden("v2")},
      directory);
  CHECK(result.status() == 7);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("Behind files that fail, the others are tried, but not all of them", "[upload]") {
  struct Case {
    const char* script;
    int status;
    size_t requests;
    size_t unsent;  // not even tried
  };
  const std::vector<std::string> files(7, golden("v1"));
  const Case cases[] = {{"[401]", 3, 1, 6},       // a wrong key is wrong for all
                        {"[403, 200]", 3, 7, 0},  // a firewall dislikes one
                        {"[403]", 3, 5, 2}};
  for (const Case& one : cases) {
    INFO(one.script);
    const SentryServer server(one.script);
    const TemporaryDirectory directory;
    std::vector<std::string> arguments = {"upload", "--dsn", server.dsn(kKey)};
    arguments.insert(arguments.end(), files.begin(), files.end());
    const auto result = run_sentry_prof(arguments, directory);
    INFO(result.standard_error);
    CHECK(result.status() == one.status);
    CHECK(server.requests().size() == one.requests);
    size_t unsent = 0;
    for (size_t at = 0;
         (at = result.standard_error.find(" was not sent\n", at)) != std::string::npos; ++at) {
      ++unsent;
    }
    CHECK(unsent == one.unsent);
  }
}

TEST_CASE("A dry run writes what would be sent, and Sentry would take it", "[upload]") {
  const TemporaryDirectory directory;
  for (const char* name : {"v1", "v2", "v2_native"}) {
    INFO(name);
    const auto result =
        run_sentry_prof({"upload", "--dry-run", "-o", "-", golden(name)}, directory);
    CHECK(result.status() == 0);
    const auto report = validate(result.standard_output, {.against_documents = false});
    CHECK(report.kind == sentry_prof::ValidatedKind::Envelope);
    CHECK(report.valid);
    CHECK_FALSE(contains(result.standard_output, "\"elf\""));
    const auto kept = run_sentry_prof(
        {"upload", "--dry-run", "--keep-image-type", "-o", "-", golden(name)}, directory);
    CHECK(contains(kept.standard_output, "\"elf\"") ==
          contains(contents_of(golden(name)), "\"elf\""));
    // An envelope of somebody else's with the documents' image type becomes the same one.
    std::ofstream(directory.path() + "/kept.envelope") << kept.standard_output;
    const auto mended =
        run_sentry_prof({"upload", "--dry-run", "-o", "-", "kept.envelope"}, directory);
    CHECK(mended.standard_output == result.standard_output);
  }
}

TEST_CASE("A dry run does not replace what it reads", "[upload]") {
  const TemporaryDirectory directory;
  write_text(directory.file("profile.json"), contents_of(golden("v2")));
  REQUIRE(::symlink("profile.json", directory.file("link").c_str()) == 0);
  for (const char* output : {"profile.json", "./profile.json", "link"}) {
    INFO(output);
    const auto result =
        run_sentry_prof({"upload", "--dry-run", "-o", output, "profile.json"}, directory);
    CHECK(result.status() == 2);
    CHECK(contains(result.standard_error, "profile.json is the name of the output, too"));
    CHECK(contents_of(directory.file("profile.json")) == contents_of(golden("v2")));
  }
}

TEST_CASE("The DSN comes from an option, a file, the environment or .sentryclirc", "[upload]") {
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  const std::string dsn = server.dsn(kKey);
  const std::vector<std::string> plain = {"upload", golden("v2")};
  CHECK(run_sentry_prof(plain, directory).status() == 2);
  CHECK(run_sentry_prof(plain, directory, {{"SENTRY_DSN", dsn}}).status() == 0);
  CHECK(run_sentry_prof({"upload", "--dsn=" + dsn, golden("v2")}, directory).status() == 0);
  std::ofstream(directory.path() + "/dsn") << dsn << "\n";
  CHECK(run_sentry_prof({"upload", "--dsn-file", "dsn", golden("v2")}, directory).status() == 0);
  const std::string fifo = directory.file("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(fifo) << dsn << "\n"; });
  CHECK(run_sentry_prof({"upload", "--dsn-file", "fifo", golden("v2")}, directory).status() == 0);
  writer.join();
  std::ofstream(directory.path() + "/.sentryclirc")
      << "[defaults]\ndsn=x\n[auth]\ndsn = " << dsn << "\n";
  CHECK(run_sentry_prof(plain, directory).status() == 0);
  CHECK(server.requests().size() == 5);
}

TEST_CASE("A DSN in the wrong place is not quoted", "[upload]") {
  const TemporaryDirectory directory;
  const std::string dsn = "https://" + kKey + "@example.invalid/42";
  run_sentry_prof({"upload", dsn}, directory);
  run_sentry_prof({"record", dsn}, directory);
  run_sentry_prof({"upload", "--dsn", dsn + "?x", golden("v2")}, directory);
  run_sentry_prof({"upload", "--dsn", "https:/" + kKey, golden("v2")}, directory);
  run_sentry_prof({"upload", "--dsn", dsn, "--max-retries", "x"}, directory);
}

TEST_CASE("A DSN that does not come can be interrupted", "[upload]") {
  const TemporaryDirectory directory;
  const std::string fifo = directory.file("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const std::string open_for_all = "exec 3<>fifo; exec \"$0\" \"$@\"";
  const bool is_recorded = GENERATE(false, true);
  const Command inner = sentry_prof_in(
      directory, is_recorded
                     ? std::vector<std::string>{"record", "--upload", "--dsn-file", "fifo", "--",
                                                "sleep", "60"}
                     : std::vector<std::string>{"upload", "--dsn-file", "fifo", golden("v2")});
  Command command = inner;
  command.arguments = {"bash", "-c", open_for_all};
  command.arguments.insert(command.arguments.end(), inner.arguments.begin(), inner.arguments.end());
  BackgroundProcess waiting(command);
  sleep_for(0.5);
  waiting.send_signal(SIGTERM);
  CHECK(waiting.wait(10).status() == -SIGTERM);
}

TEST_CASE("Standard input is for one thing", "[upload]") {
  const TemporaryDirectory directory;
  const auto result = run_sentry_prof({"upload", "--dsn-file", "-", "-"}, directory);
  CHECK(result.status() == 2);
  CHECK(contains(result.standard_error, "'-' is standard input, which can be read for one thing"));
}

TEST_CASE("What ^C interrupts says how long the server had been silent", "[upload]") {
  const SentryServer server(R"([{"do": "stall"}])");
  const TemporaryDirectory directory;
  BackgroundProcess upload(
      sentry_prof_in(directory, {"upload", "--dsn", server.dsn(kKey), golden("v2")}));
  REQUIRE(wait_until([&] { return !server.requests().empty(); }));
  sleep_for(1.2);
  upload.send_signal(SIGINT);
  const auto result = without_key(upload.wait(30));
  INFO(result.standard_error);
  CHECK(result.status() == -SIGINT);
  CHECK(contains(result.standard_error, "127.0.0.1 had not answered after"));
}

TEST_CASE("A wait is told with the try that follows", "[upload]") {
  const SentryServer server(R"([{"status": 429, "headers": {"Retry-After": "4"}}, 200])");
  const TemporaryDirectory directory;
  const auto result = run_sentry_prof(
      {"upload", "--dsn", server.dsn(kKey), "--max-retries", "2", golden("v2")}, directory);
  CHECK(result.status() == 0);
  CHECK(contains(result.standard_error, "wants no more of this for now: try 2 of 3 is in 4 s"));
}

TEST_CASE("Spotlight gets a copy without the key", "[upload]") {
  const SentryServer server("[200]");
  const SentryServer spotlight("[500]");
  const TemporaryDirectory directory;
  const auto result = run_sentry_prof({"upload", "--dsn", server.dsn(kKey), golden("v2")},
                                      directory, {{"SENTRY_SPOTLIGHT", spotlight.url()}});
  CHECK(result.status() == 0);
  REQUIRE(spotlight.requests().size() == 1);
  CHECK(spotlight.requests()[0].body == server.requests()[0].body);
  CHECK_FALSE(spotlight.requests()[0].has(kKey));
}
