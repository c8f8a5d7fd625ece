// Transactions that `sentry-prof upload` sends with profiles.
#include "process.h"
#include "sentry_server.h"
#include "support/catch2.h"
#include "temporary_directory.h"
#include "text_file.h"
#include "upload_runs.h"

#include <fstream>
#include <string>
#include <vector>

using namespace sentry_prof::testing;

TEST_CASE("A transaction is linked to the chunk and sent behind it", "[upload]") {
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/t.json")
      << R"({"type":"transaction","event_id":"0123456789abcdef0123456789abcdef","contexts":{"trace":{"op":"x",)"
      << R"("trace_id":"0123456789abcdef0123456789abcdef","span_id":"0123456789abcdef"}},)"
      << R"("start_timestamp":1,"timestamp":2,"spans":[{"op":"a"},{"data":{"thread.id":"7"}}]})";
  CHECK(run_sentry_prof({"upload", "--dsn", server.dsn(kKey), "--compress", "none",
                         "--link-transaction", "t.json", golden("v2")},
                        directory)
            .status() == 0);
  const auto requests = server.requests();
  REQUIRE(requests.size() == 2);
  const std::string profiler = member(requests[0].body, "profiler_id");
  REQUIRE(profiler.size() == 32);
  CHECK(contains(requests[1].body, R"("profile":{"profiler_id":")" + profiler + "\"}"));
  CHECK(contains(requests[1].body, R"("span_id":"0123456789abcdef","data":{"thread.id":")"));
  CHECK(contains(requests[1].body, R"({"op":"a","data":{"thread.id":")"));
  CHECK(contains(requests[1].body, R"({"data":{"thread.id":"7"}})"));
}

namespace {

// An event that belongs to `profile`, and that the server would refuse: it has no times.
void write_timeless_transaction(const std::string& path, const std::string& profile) {
  const std::string text = contents_of(profile);
  std::ofstream(path) << R"({"type":"transaction","event_id":")"
                      << member(text.substr(text.find("\"transaction\"")), "id") << "\"}";
}

}  // namespace

TEST_CASE("A transaction of the user's is judged in its envelope", "[upload]") {
  const bool is_linked = GENERATE(false, true);
  const bool is_judged = GENERATE(true, false);
  const SentryServer server("[200]");
  const TemporaryDirectory directory;
  write_timeless_transaction(directory.path() + "/t.json", golden("v1"));
  std::vector<std::string> arguments = {"upload", "--dsn", server.dsn(kKey)};
  if (is_linked) {
    arguments.insert(arguments.end(), {"--link-transaction", "t.json", golden("v2")});
  } else {
    arguments.insert(arguments.end(), {"--transaction-file", "t.json", golden("v1")});
  }
  if (!is_judged) arguments.push_back("--no-validate");
  const auto result = run_sentry_prof(arguments, directory);
  INFO(result.standard_error);
  CHECK(result.status() == (is_judged ? 1 : 0));
  CHECK(contains(result.standard_error, "start_timestamp is missing [transaction-time]") ==
        is_judged);
  CHECK_FALSE(contains(result.standard_error, "envelope-empty"));
  const size_t chunks = is_linked ? 1 : 0;  // which is good
  CHECK(server.requests().size() == chunks + (is_judged ? 0 : 1));
}

TEST_CASE("A transaction that has no chunk to be linked to is told to be unsent", "[upload]") {
  struct Case {
    const char* script;
    int status;
    const char* reason;
  };
  const Case cases[] = {
      {"[413]", 4, "no chunk was accepted to link it to"},
      {"[403]", 3, "no chunk was accepted to link it to"},
      {"[200, 401]", 3, "sending ended before it"},
  };
  for (const Case& one : cases) {
    INFO(one.script);
    const SentryServer server(one.script);
    const TemporaryDirectory directory;
    write_timeless_transaction(directory.file("t.json"), golden("v1"));
    const auto result = run_sentry_prof({"upload", "--dsn", server.dsn(kKey), "--link-transaction",
                                         "t.json", golden("v2"), golden("v2_native")},
                                        directory);
    INFO(result.standard_error);
    CHECK(result.status() == one.status);
    CHECK(contains(result.standard_error, std::string("t.json was not sent: ") + one.reason));
  }
}

TEST_CASE("A transaction without a file of profiles is refused", "[upload]") {
  const TemporaryDirectory directory;
  for (const char* option : {"--link-transaction", "--transaction-file"}) {
    const auto result = run_sentry_prof(
        {"upload", "--dsn", "http://" + kKey + "@127.0.0.1:1/42", "--spool", "s", option, "t.json"},
        directory);
    CHECK(result.status() == 2);
    CHECK(contains(result.standard_error, option));
  }
}
