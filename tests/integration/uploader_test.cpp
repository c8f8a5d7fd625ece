// The uploader on the real client: nothing is lost between a server that fails in all ways and a
// client that tries again.
#include "upload/uploader.h"

#include "process.h"
#include "sentry_server.h"
#include "support/catch2.h"
#include "upload/curl_client.h"

#include <algorithm>
#include <random>
#include <string>

using namespace sentry_prof::testing;
using namespace sentry_prof::upload;
using sentry_prof::sentry::Dsn;

namespace {

// Long waits are short here, but the uploader sees them pass as long ones.
class HurriedWaiter final : public Waiter {
 public:
  uint64_t now_ns() const override { return now_; }
  int64_t unix_now_s() const override { return static_cast<int64_t>(now_ / 1'000'000'000); }
  bool wait(uint64_t duration_ns) override {
    now_ += duration_ns;
    sleep_for(std::min(static_cast<double>(duration_ns) / 1e9, 0.05));
    return true;
  }

 private:
  uint64_t now_ = 0;
};

constexpr const char* kMixedFaults = R"({"seed": 7, "mix": [200, 200, 200, 500, 503,
  {"status": 429}, {"status": 429, "headers": {"Retry-After": "5"}},
  {"status": 429, "headers": {"Retry-After": "Mon, 05 Jan 2026 12:00:30 GMT", "Date": "Mon, 05 Jan 2026 12:00:00 GMT"}},
  {"status": 429, "headers": {"X-Sentry-Rate-Limits": "7:profile_chunk:org, 60:error:org"}},
  {"status": 429, "headers": {"X-Sentry-Rate-Limits": "garbage"}},
  {"status": 200, "headers": {"X-Sentry-Rate-Limits": "3::org"}},
  {"do": "reset"}, {"do": "reset-early"}, {"do": "close"}, {"do": "half-head"}, {"do": "half-body"},
  {"do": "stall"}, {"do": "restart", "seconds": 0.1}]})";

// The server took it: it read all of it and decided for it, whether its answer arrived or not.
bool was_taken(const SentryServer& server, const std::string& body) {
  const auto requests = server.requests();
  return std::any_of(requests.begin(), requests.end(), [&](const KeptRequest& request) {
    return request.body == body && request.has(R"("whole": true)") &&
           (request.has(R"("status": 200)") || request.has(R"("do": "half-body")"));
  });
}

}  // namespace

TEST_CASE("Every envelope that counts as accepted was taken by the server", "[uploader]") {
  const SentryServer server(kMixedFaults);
  CurlOptions curl_options;
  curl_options.stall_time_s = 1;
  auto client = CurlClient::create(curl_options);
  REQUIRE(client);
  HurriedWaiter waiter;
  UploaderOptions options;
  options.client = "test/1";
  options.retries.max_retries = 60;  // so that a run of bad luck ends with good luck
  options.longest_limit_wait_ns = UINT64_C(24 * 3600) * 1'000'000'000;
  Uploader uploader(*Dsn::parse(server.dsn("0123456789abcdef")), **client, waiter, options,
                    std::mt19937_64(1));

  for (int i = 0; i < 25; ++i) {
    const std::string body = "envelope " + std::to_string(i) + std::string(1000 * i, '.');
    const Outcome outcome = uploader.send({body, "", Category::ProfileChunk});
    INFO(sentence(outcome, "server"));
    CHECK(outcome.kind == OutcomeKind::Accepted);
    CHECK(was_taken(server, body));
  }
}
