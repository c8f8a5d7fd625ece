// `sentry-prof record --upload` as its users call it, against a scripted server: what arrives, what
// is kept, and that the key is in no output.
#include "process.h"
#include "sentry_prof/validate.h"
#include "sentry_server.h"
#include "support/catch2.h"
#include "temporary_directory.h"
#include "text_file.h"
#include "upload_runs.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

using namespace sentry_prof::testing;
using sentry_prof::validate;

namespace {

// Of the samples in the text of a chunk.
std::vector<double> timestamps(const std::string& chunk) {
  const std::string key = "\"timestamp\":";
  std::vector<double> result;
  for (size_t at = chunk.find(key); at != chunk.npos; at = chunk.find(key, at + 1)) {
    result.push_back(std::strtod(chunk.c_str() + at + key.size(), nullptr));
  }
  return result;
}

}  // namespace

TEST_CASE("record --upload sends chunk after chunk, in order, valid and contiguous",
          "[record_upload]") {
  const char* seconds = std::getenv("SENTRY_PROF_UPLOAD_SECONDS");  // 60 for the long run
  const double duration_s = seconds == nullptr ? 8 : std::atof(seconds);
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  const std::string socket = directory.file("redis");
  BackgroundProcess redis(
      {.arguments = {"redis-server", "--port", "0", "--unixsocket", socket, "--save", ""},
       .directory = directory.path()});
  REQUIRE(redis.wait_for_output("to accept connections"));
  const BackgroundProcess load(
      {.arguments = {"redis-benchmark", "-s", socket, "-l", "-q"}, .directory = directory.path()});
  const auto result = without_key(
      run_command({.arguments = {sentry_prof_path(), "record", "-p", std::to_string(redis.pid()),
                                 "--upload", "--dsn", server.dsn(kKey), "--compress", "none",
                                 "--chunk-seconds", "2", "--summary", "summary.json", "-d",
                                 std::to_string(duration_s), "--transaction", "GET /"},
                   .directory = directory.path(),
                   .time_out_s = duration_s + 60}));
  INFO(result.standard_error);
  CHECK(result.status() == 0);
  const auto requests = server.requests();
  const size_t chunks = static_cast<size_t>(duration_s / 2);
  REQUIRE(requests.size() >= chunks + 1);
  const std::string profiler = member(requests.front().body, "profiler_id");
  double last = 0;
  size_t samples = 0;
  std::set<std::string> chunk_ids;
  for (size_t i = 0; i + 1 < requests.size(); ++i) {
    INFO(i);
    const std::string& body = requests[i].body;
    CHECK(validate(body, {.against_documents = false}).valid);
    CHECK(member(body, "profiler_id") == profiler);
    const auto times = timestamps(body);
    REQUIRE_FALSE(times.empty());
    const auto [first_time, last_time] = std::minmax_element(times.begin(), times.end());
    CHECK(*first_time >= last);                // in order
    if (i > 0) CHECK(*first_time - last < 2);  // a chunk that is missing would be a longer hole
    last = *last_time;
    samples += times.size();
    chunk_ids.insert(member(body, "chunk_id"));
  }
  const std::string& transaction = requests.back().body;
  CHECK(member(transaction, "transaction") == "GET /");
  CHECK(contains(transaction, R"("profile":{"profiler_id":")" + profiler + "\"}"));
  CHECK(files_in(directory.path()) == 2);  // without -o no file but the summary: and the socket
  // What arrived is what was recorded, each chunk once.
  const Summary summary = Summary::load(directory.file("summary.json"));
  CHECK(chunk_ids.size() == requests.size() - 1);
  CHECK(static_cast<double>(chunk_ids.size()) == summary.number("chunks"));
  CHECK(static_cast<double>(samples) == summary.number("samples") + summary.number("idle_markers"));
}

TEST_CASE("With -o each chunk is in its file and at Sentry under one id", "[record_upload]") {
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  const auto result = run_sentry_prof(
      {"record", "--upload", "--dsn", server.dsn(kKey), "--compress", "none", "-o", "x.json", "--",
       "bash", "-c", "for ((i = 0; i < 300000; ++i)); do :; done; exit 3"},
      directory);
  INFO(result.standard_error);
  CHECK(result.status() == 3);
  REQUIRE(server.requests().size() == 1);
  CHECK(member(server.requests()[0].body, "chunk_id") ==
        member(contents_of(directory.path() + "/x.json"), "chunk_id"));
}

namespace {

constexpr const char* kSomeWork = "for ((i = 0; i < 300000; ++i)); do :; done; exit 3";

}  // namespace

TEST_CASE("The exit status of an attached recording tells why its chunks were not taken",
          "[record_upload]") {
  const auto [answer, status] = GENERATE(table<int, int>({{401, 3}, {413, 4}, {429, 5}, {503, 6}}));
  INFO(answer);
  const SentryServer server("[" + std::to_string(answer) + "]");
  const TemporaryDirectory directory;
  const BackgroundProcess busy({.arguments = {"bash", "-c", "while :; do :; done"}});
  const auto result = run_sentry_prof(
      {"record", "--upload", "--dsn", server.dsn(kKey), "--spool", "spool", "--max-retries", "0",
       "-F", "997", "-d", "0.5", "-p", std::to_string(busy.pid())},
      directory);
  INFO(result.standard_error);
  CHECK(result.status() == status);
}

TEST_CASE(
    "A command whose chunk is refused for good, and is in no file, is a recording that failed",
    "[record_upload]") {
  const SentryServer server("[413]");
  const TemporaryDirectory directory;
  const auto result = run_sentry_prof({"record", "--upload", "--dsn", server.dsn(kKey), "--spool",
                                       "spool", "--", "bash", "-c", kSomeWork},
                                      directory);
  INFO(result.standard_error);
  CHECK(result.status() == 125);
  CHECK(server.requests().size() == 1);
  CHECK(files_in(directory.file("spool")) == 0);
  CHECK(files_in(directory.path()) == 1);  // the spool
}

TEST_CASE("^C waits for a silent server for a short while, and says where the rest is",
          "[record_upload]") {
  const SentryServer server(R"([{"do": "stall"}])");
  const TemporaryDirectory directory;
  const bool has_spool = GENERATE(false, true);
  std::vector<std::string> arguments = {sentry_prof_path(), "record", "--upload", "--dsn",
                                        server.dsn(kKey)};
  if (has_spool) arguments.insert(arguments.end(), {"--spool", directory.path() + "/spool"});
  const BackgroundProcess busy({.arguments = {"bash", "-c", "while :; do :; done"}});
  arguments.insert(arguments.end(), {"-p", std::to_string(busy.pid())});
  BackgroundProcess record({.arguments = arguments, .directory = directory.path()});
  sleep_for(1.5);
  record.send_signal(SIGINT);
  const auto result = without_key(record.wait(30));
  INFO(result.standard_error);
  CHECK(result.status() == -SIGINT);
  CHECK(contains(result.standard_error, has_spool ? "kept in" : "kept as unsent-"));
  CHECK(files_in(has_spool ? directory.path() + "/spool" : directory.path()) == 1);
}

TEST_CASE("A signal that ends the command waits no longer for a silent server", "[record_upload]") {
  const SentryServer server(R"([{"do": "stall"}])");
  const TemporaryDirectory directory;
  BackgroundProcess record(
      sentry_prof_in(directory, {"record", "--upload", "--dsn", server.dsn(kKey), "--spool",
                                 "spool", "--", "bash", "-c", "echo ready; while :; do :; done"}));
  REQUIRE(record.wait_for_output("ready"));
  sleep_for(1.0);
  record.send_signal(SIGTERM);
  const auto result = without_key(record.wait(90));
  INFO(result.standard_error);
  CHECK(result.status() == 128 + SIGTERM);
  // Of a server that is waited for as long as after an end that nobody asked for.
  CHECK_FALSE(contains(result.standard_error, "sending the rest"));
  CHECK(files_in(directory.file("spool")) == 1);
}

TEST_CASE("What is the command's does not end the sending of the rest", "[record_upload]") {
  const SentryServer server(R"([{"status": 200, "delay": 3}])");
  const TemporaryDirectory directory;
  const char* const script = "for ((i = 0; i < 100000; ++i)); do :; done; echo done; exit 3";
  BackgroundProcess record({.arguments = {sentry_prof_path(), "record", "--upload", "--dsn",
                                          server.dsn(kKey), "--", "bash", "-c", script},
                            .directory = directory.path()});
  REQUIRE(record.wait_for_output("done"));
  sleep_for(1.0);
  for (const int signal : {SIGWINCH, SIGUSR1}) record.send_signal(signal);
  const auto result = without_key(record.wait(30));
  INFO(result.standard_error);
  CHECK(result.status() == 3);
  CHECK_FALSE(contains(result.standard_error, "unsent"));
  CHECK(files_in(directory.path()) == 0);
}

TEST_CASE("A command that goes on gets what is its own while the rest is sent", "[record_upload]") {
  const SentryServer server(R"([{"status": 200, "delay": 3}])");
  const TemporaryDirectory directory;
  const char* const script =
      "trap 'echo reopened; kill $!; exit 4' USR1; (while :; do :; done) & echo ready; wait";
  BackgroundProcess record({.arguments = {sentry_prof_path(), "record", "-d", "0.5", "--upload",
                                          "--dsn", server.dsn(kKey), "--", "bash", "-c", script},
                            .directory = directory.path()});
  REQUIRE(record.wait_for_output("ready"));
  sleep_for(1.5);
  record.send_signal(SIGUSR1);
  CHECK(record.wait_for_output("reopened"));
  const auto result = without_key(record.wait(30));
  INFO(result.standard_error);
  CHECK(result.status() == 4);
  CHECK(files_in(directory.path()) == 0);
}

namespace {

// Records a process that is not there, with an envelope of an earlier run in the spool.
CommandResult fail_to_record(const SentryServer& server, const TemporaryDirectory& directory) {
  const std::vector<std::string> sending = {"--dsn", server.dsn(kKey), "--spool",
                                            "spool", "--max-retries",  "0"};
  std::vector<std::string> upload = {"upload", golden("v1")};
  upload.insert(upload.end(), sending.begin(), sending.end());
  CHECK(run_sentry_prof(upload, directory).status() == 6);
  REQUIRE(files_in(directory.file("spool")) == 1);
  // Above the kernel's largest, PID_MAX_LIMIT.
  std::vector<std::string> record = {"record", "--upload", "-p", "99999999"};
  record.insert(record.end(), sending.begin(), sending.end());
  return run_sentry_prof(record, directory);
}

}  // namespace

TEST_CASE("A recording that fails sends what waits in the spool", "[record_upload]") {
  // Slower than the failure: without waiting for it nothing would be sent.
  const SentryServer server(R"([503, {"status": 200, "delay": 1}])");
  const TemporaryDirectory directory;
  const auto result = fail_to_record(server, directory);
  INFO(result.standard_error);
  CHECK(result.status() == 1);
  CHECK(contains(result.standard_error, "99999999"));
  CHECK(server.requests().size() == 2);
  CHECK(files_in(directory.file("spool")) == 0);
}

TEST_CASE("A recording that fails keeps and tells what cannot be sent", "[record_upload]") {
  const SentryServer server("[503]");
  const TemporaryDirectory directory;
  const auto result = fail_to_record(server, directory);
  INFO(result.standard_error);
  CHECK(result.status() == 1);
  CHECK(contains(result.standard_error, "99999999"));
  CHECK(contains(result.standard_error, "1 not sent yet, kept in spool"));
  CHECK(files_in(directory.file("spool")) == 1);
}

TEST_CASE("What earlier runs left in the spool does not decide the exit status",
          "[record_upload]") {
  const SentryServer server("[503, 200]");
  const TemporaryDirectory directory;
  const std::vector<std::string> sending = {"--dsn", server.dsn(kKey), "--spool",
                                            "spool", "--max-retries",  "0"};
  std::vector<std::string> upload = {"upload", golden("v1")};
  upload.insert(upload.end(), sending.begin(), sending.end());
  CHECK(run_sentry_prof(upload, directory).status() == 6);
  for (const auto& entry : std::filesystem::directory_iterator(directory.file("spool"))) {
    std::filesystem::resize_file(entry.path(), 10);
  }
  std::vector<std::string> record = {"record", "--upload"};
  record.insert(record.end(), sending.begin(), sending.end());
  record.insert(record.end(),
                {"--", "bash", "-c", "for ((i = 0; i < 300000; ++i)); do :; done; exit 3"});
  const auto result = run_sentry_prof(record, directory);
  INFO(result.standard_error);
  CHECK(result.status() == 3);
  CHECK(contains(result.standard_error, "1 damaged, set aside"));
  CHECK(server.requests().size() == 2);
}

TEST_CASE("A recording whose directory goes away sends its chunks all the same",
          "[record_upload]") {
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  const BackgroundProcess busy({.arguments = {"bash", "-c", "while :; do :; done"}});
  std::filesystem::create_directory(directory.file("out"));
  BackgroundProcess record(sentry_prof_in(
      directory, {"record", "--upload", "--dsn", server.dsn(kKey), "-o", "out/x.json", "-p",
                  std::to_string(busy.pid()), "--chunk-seconds", "1", "-d", "3"}));
  REQUIRE(wait_until([&] { return !server.requests().empty(); }));
  std::filesystem::remove_all(directory.file("out"));
  const auto result = without_key(record.wait(30));
  INFO(result.standard_error);
  CHECK(result.status() == 7);
  CHECK(contains(result.standard_error, "chunks uploaded only: "));
  CHECK(server.requests().size() >= 3);
  CHECK(contains(result.standard_output + result.standard_error,
                 std::to_string(server.requests().size()) + " accepted by"));
}
