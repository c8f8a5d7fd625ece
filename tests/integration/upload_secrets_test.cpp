// The key of the DSN: in no output, whatever happens and however much is told, and not to be read
// by others.
#include "prerequisites.h"
#include "sentry_server.h"
#include "support/catch2.h"
#include "test_certificates.h"
#include "text_file.h"
#include "upload_runs.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof::testing;

namespace {

const std::string kPassword = "PROXYPASSWORD";

void check_no_secret_in_files(const std::string& directory) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    INFO(entry.path());
    CHECK_FALSE(shows_key(entry.path().string()));
    if (entry.is_regular_file()) CHECK_FALSE(shows_key(contents_of(entry.path().string())));
  }
}

// Runs it plain and talkative; gives what the talkative run said. The exit code must be the same.
std::string run_both_ways(const std::vector<std::string>& arguments, int status,
                          std::map<std::string, std::string> environment = {}) {
  std::string said;
  for (const char* debug : {"", "1"}) {
    environment["SENTRY_DEBUG"] = debug;
    const TemporaryDirectory directory;
    const CommandResult result = run_sentry_prof(arguments, directory, environment);
    INFO(result.standard_error);
    CHECK(result.status() == status);
    said = result.standard_output + result.standard_error;
    CHECK_FALSE(contains(said, kPassword));
    check_no_secret_in_files(directory.path());
  }
  return said;
}

std::vector<std::string> upload_with(const std::string& dsn, std::vector<std::string> more = {}) {
  std::vector<std::string> result = {"upload", "--dsn", dsn, "--max-retries", "0", golden("v2")};
  result.insert(result.end(), more.begin(), more.end());
  return result;
}

// Everything a server can say, with the key in it.
std::string quoting_answer(int status) {
  const std::string key = status % 2 == 0 ? kKey : "C0FFEE00C0FFEE00C0FFEE00C0FFEE00";
  const std::string status_text = std::to_string(status);
  return R"([{"status": )" + status_text + R"(, "body": "{\"detail\": \"key )" + key +
         R"(\"}", "headers": {"X-Sentry-Error": "key )" + key + R"( unknown", "Retry-After": ")" +
         key + R"(", "X-Sentry-Rate-Limits": "1:)" + key + R"(:org", "Location": "http://)" + key +
         R"(@elsewhere/"}}])";
}

// A server that never answers, and a sentry-prof that waits for it.
class StalledUpload {
 public:
  explicit StalledUpload(const std::vector<std::string>& before,
                         const std::vector<std::string>& dsn_options,
                         const std::map<std::string, std::string>& environment = {})
      : server_(R"([{"do": "stall"}])"),
        directory_(),
        process_(command(before, dsn_options, environment)) {
    REQUIRE(wait_until([&] { return !server_.requests().empty(); }));
  }
  pid_t pid() const { return process_.pid(); }
  std::string proc_file(const std::string& name) const {
    return "/proc/" + std::to_string(pid()) + "/" + name;
  }

 private:
  // "DSN" in an option or a variable stands for the server's.
  std::string filled(std::string text) const {
    const size_t place = text.find("DSN!");
    return place == text.npos ? text : text.replace(place, 4, server_.dsn(kKey));
  }
  Command command(const std::vector<std::string>& before,
                  const std::vector<std::string>& dsn_options,
                  const std::map<std::string, std::string>& environment) const {
    std::vector<std::string> arguments = {"upload"};
    for (const std::string& option : dsn_options) arguments.push_back(filled(option));
    arguments.push_back(copy_for_all(golden("v2")));
    Command result = sentry_prof_in(directory_, arguments);
    result.arguments.front() = copy_for_all(sentry_prof_path());
    for (const auto& [name, value] : environment) result.environment[name] = filled(value);
    result.arguments.insert(result.arguments.begin(), before.begin(), before.end());
    return result;
  }

  // The build directory may lie where other users cannot look.
  std::string copy_for_all(const std::string& file) const {
    namespace fs = std::filesystem;
    fs::permissions(directory_.path(), fs::perms(0755));
    const std::string copy = directory_.file(fs::path(file).filename());
    fs::copy_file(file, copy);
    fs::permissions(copy, fs::perms(0755));
    return copy;
  }

  SentryServer server_;
  TemporaryDirectory directory_;
  BackgroundProcess process_;
};

}  // namespace

TEST_CASE("The key is in no output and no file, whatever a server says", "[secrets]") {
  struct Case {
    int status;
    int exit_code;
  };
  for (const Case& one : {Case{200, 0}, Case{302, 2}, Case{400, 1}, Case{401, 3}, Case{403, 3},
                          Case{413, 4}, Case{429, 5}, Case{500, 6}, Case{503, 6}}) {
    INFO(one.status);
    const SentryServer server(quoting_answer(one.status));
    const std::string said = run_both_ways(upload_with(server.dsn(kKey)), one.exit_code);
    CHECK(contains(said, "the DSN is http://***@127.0.0.1:"));
    CHECK(contains(said, "HTTP " + std::to_string(one.status)));
    CHECK(contains(said, "X-Sentry-Error: key *** unknown"));
    if (one.status == 500) run_both_ways(upload_with(server.dsn(kKey), {"--spool", "spool"}), 6);
    // The deprecated form of a DSN: with a secret besides the key.
    if (one.status == 400) run_both_ways(upload_with(server.dsn("public:" + kKey)), 1);
  }
}

TEST_CASE("The key is in no output, whatever becomes of a connection", "[secrets]") {
  for (const char* action : {"reset", "close", "garbage", "half-head", "header-flood"}) {
    INFO(action);
    const SentryServer server(R"([{"do": ")" + std::string(action) + R"("}])");
    const std::string said = run_both_ways(upload_with(server.dsn(kKey)), 6);
    CHECK(contains(said, "no answer after"));
  }
  const std::string at_nobody = "://" + kKey + "@127.0.0.1:1/42";  // tcpmux: nobody listens
  run_both_ways(upload_with("http" + at_nobody), 6);
  run_both_ways(upload_with("https" + at_nobody), 6);

  TestCertificates certificates;
  certificates.sign("good", "IP:127.0.0.1");
  const SentryServer server("[200]", certificates.file("good.pem"), certificates.file("good.key"));
  run_both_ways(upload_with(server.dsn(kKey)), 6);
  run_both_ways(upload_with(server.dsn(kKey), {"--ca-file", certificates.authority()}), 0);
  run_both_ways(upload_with(server.dsn(kKey), {"--ca-file", "/nowhere"}), 2);
}

TEST_CASE("Neither the key nor a proxy's password is in an output of a run through proxies",
          "[secrets]") {
  const std::string dsn = "://" + kKey + "@sentry.invalid/42";
  const auto through = [](const char* variable, const SentryServer& proxy) {
    return std::map<std::string, std::string>{
        {variable, "http://user:" + kPassword + "@127.0.0.1:" + std::to_string(proxy.port())}};
  };
  run_both_ways(upload_with("http" + dsn), 0, through("http_proxy", SentryServer("[200]")));
  run_both_ways(upload_with("http" + dsn), 2,
                through("http_proxy", SentryServer(quoting_answer(407))));
  run_both_ways(upload_with("https" + dsn), 2, through("HTTPS_PROXY", SentryServer("[407]")));
  run_both_ways(upload_with("https" + dsn), 6,
                through("HTTPS_PROXY", SentryServer(quoting_answer(502))));
  run_both_ways(upload_with("https" + dsn), 6,
                {{"HTTPS_PROXY", "http://user:" + kPassword + "@127.0.0.1:1"}});
  // What is no URL is not quoted.
  run_both_ways(upload_with("https" + dsn), 2,
                {{"HTTPS_PROXY", "http://user:" + kPassword + "@127.0.0.1:99999"}});
}

TEST_CASE("The key is in no output of what does not send", "[secrets]") {
  const std::string dsn = "https://" + kKey + "@example.invalid/42";
  for (const char* output : {"-", "envelope"}) {
    run_both_ways({"upload", "--dsn", dsn, "--dry-run", "-o", output, golden("v2")}, 0);
  }
  const std::string shown = run_both_ways(upload_with(dsn, {"--print-config"}), 0);
  CHECK(contains(shown, "https://***@example.invalid/42 # command line"));
  CHECK(contains(run_both_ways({"record", "--upload", "--print-config"}, 0, {{"SENTRY_DSN", dsn}}),
                 "https://***@example.invalid/42 # SENTRY_DSN"));
  for (const std::string& wrong : {dsn + "x", dsn + "?x", "https:" + kKey, kKey + "@x/1", kKey}) {
    run_both_ways(upload_with(wrong), 2);
    run_both_ways(upload_with(wrong, {"--print-config"}), 0);
    run_both_ways({"upload", golden("v2")}, 2, {{"SENTRY_DSN", wrong}});
    run_both_ways({"record", "--upload", "--dsn", wrong, "--", "true"}, 2);
  }
}

TEST_CASE("A DSN among the arguments is not what ps shows", "[secrets]") {
  for (const auto& options : {std::vector<std::string>{"--dsn", "DSN!"}, {"--dsn=DSN!"}}) {
    const StalledUpload upload({}, options);
    const std::string arguments = contents_of(upload.proc_file("cmdline"));
    CHECK(contains(arguments, "upload"));
    CHECK(contains(arguments, "--dsn"));
    CHECK(contains(arguments, "****"));
    CHECK_FALSE(shows_key(arguments));
    CHECK_FALSE(contains(arguments, "127.0.0.1"));
  }
}

TEST_CASE("While the key is in memory no other process of the user reads it", "[secrets]") {
  SKIP_IF(missing_root());
  SKIP_IF(missing_program("setpriv"));
  // The files of a process that is not dumpable belong to root, whoever runs it: no memory, no
  // environment, and no core dump.
  const std::vector<std::string> as_nobody = {"setpriv", "--reuid=65534", "--regid=65534",
                                              "--clear-groups"};
  const StalledUpload upload(as_nobody, {}, {{"SENTRY_DSN", "DSN!"}});
  for (const char* name : {"mem", "environ", "maps"}) {
    INFO(name);
    struct stat facts = {};
    REQUIRE(::stat(upload.proc_file(name).c_str(), &facts) == 0);
    CHECK(facts.st_uid == 0);
    std::vector<std::string> read = as_nobody;
    read.insert(read.end(), {"head", "-c", "1", upload.proc_file(name)});
    CHECK(run_command({.arguments = read}).status() != 0);
  }
}

TEST_CASE("What a recording could not send is kept without the key", "[record_upload]") {
  const SentryServer server("[500]");
  const bool has_spool = GENERATE(false, true);
  const TemporaryDirectory directory;
  std::vector<std::string> arguments = {
      "record", "-v", "--upload", "--dsn", server.dsn(kKey), "--max-retries", "0"};
  if (has_spool) arguments.insert(arguments.end(), {"--spool", "spool"});
  arguments.insert(arguments.end(),
                   {"--", "bash", "-c", "for ((i = 0; i < 200000; ++i)); do :; done"});
  const CommandResult result = run_sentry_prof(arguments, directory);
  INFO(result.standard_error);
  CHECK(contains(result.standard_error, "/api/42/envelope/ ("));
  CHECK(contains(result.standard_error, "HTTP 500 in "));
  CHECK_FALSE(std::filesystem::is_empty(directory.path()));
  check_no_secret_in_files(directory.path());
}
