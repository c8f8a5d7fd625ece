#include "upload/uploader.h"

#include "base/time_units.h"
#include "support/catch2.h"

#include <deque>
#include <string>
#include <vector>

using namespace sentry_prof::upload;
using sentry_prof::kNsPerSecond;
using sentry_prof::sentry::Dsn;

namespace {

// Answers from a list; keeps what it was asked.
class FakeClient final : public HttpClient {
 public:
  void answer(int status, std::string rate_limits = "", std::string retry_after = "",
              std::string body = "") {
    HttpReply reply;
    reply.status = status;
    reply.rate_limits = std::move(rate_limits);
    reply.retry_after = std::move(retry_after);
    reply.body = std::move(body);
    answers.push_back(std::move(reply));
  }
  void fail(HttpFailureKind kind, std::string message = "why") {
    answers.push_back(tl::unexpected(HttpFailure{kind, std::move(message)}));
  }
  HttpResult post(const HttpRequest& request) override {
    requests.push_back(request);
    REQUIRE_FALSE(answers.empty());
    HttpResult result = answers.front();
    answers.pop_front();
    return result;
  }

  std::deque<HttpResult> answers;
  std::vector<HttpRequest> requests;
};

// Time passes only in waits.
class FakeWaiter final : public Waiter {
 public:
  uint64_t now_ns() const override { return now; }
  int64_t unix_now_s() const override {
    return 784111777 + static_cast<int64_t>(now / kNsPerSecond);
  }
  bool wait(uint64_t duration_ns) override {
    waits.push_back(duration_ns);
    if (waits.size() > waits_allowed) return false;
    now += duration_ns;
    return true;
  }

  uint64_t now = 0;
  size_t waits_allowed = 1000;
  std::vector<uint64_t> waits;
};

struct Fixture {
  explicit Fixture(UploaderOptions options = {})
      : uploader(*Dsn::parse("https://0123456789abcdef@sentry.example/42"), client, waiter,
                 std::move(options), [] { return uint64_t{0}; }) {}

  Outcome send(Categories categories = Category::ProfileChunk) {
    return uploader.send({"envelope", "gzip", categories});
  }

  FakeClient client;
  FakeWaiter waiter;
  Uploader uploader;
};

std::string header_of(const HttpRequest& request, const std::string& name) {
  for (const HttpHeader& header : request.headers) {
    if (header.name == name) return header.value;
  }
  return {};
}

}  // namespace

TEST_CASE("An envelope goes to the DSN's URL with its headers", "[uploader]") {
  UploaderOptions options;
  options.client = "sentry-prof/9.9";
  Fixture f(options);
  f.client.answer(200);
  const Outcome outcome = f.send();
  CHECK(outcome.kind == OutcomeKind::Accepted);
  CHECK(outcome.tries == 1);
  CHECK(f.waiter.waits.empty());
  REQUIRE(f.client.requests.size() == 1);
  const HttpRequest& request = f.client.requests[0];
  CHECK(request.url == "https://sentry.example/api/42/envelope/");
  CHECK(request.body == "envelope");
  CHECK(header_of(request, "Content-Type") == "application/x-sentry-envelope");
  CHECK(header_of(request, "Content-Encoding") == "gzip");
  CHECK(header_of(request, "User-Agent") == "sentry-prof/9.9");
  CHECK(header_of(request, "X-Sentry-Auth") ==
        "Sentry sentry_version=7, sentry_key=0123456789abcdef, sentry_client=sentry-prof/9.9");
}

TEST_CASE("Network errors and server errors are tried again, later and later", "[uploader]") {
  Fixture f;
  f.client.fail(HttpFailureKind::Unreachable);
  f.client.answer(503);
  f.client.fail(HttpFailureKind::ConnectionLost);
  f.client.answer(200);
  const Outcome outcome = f.send();
  CHECK(outcome.kind == OutcomeKind::Accepted);
  CHECK(outcome.tries == 4);
  CHECK(f.waiter.waits == std::vector<uint64_t>{kNsPerSecond / 2, kNsPerSecond, 2 * kNsPerSecond});
  for (const HttpRequest& request : f.client.requests) CHECK(request.body == "envelope");
}

TEST_CASE("After the last retry the last outcome stands", "[uploader]") {
  UploaderOptions options;
  options.retries.max_retries = 2;
  Fixture f(options);
  f.client.answer(500);
  f.client.answer(500);
  f.client.fail(HttpFailureKind::TimedOut, "silent");
  const Outcome outcome = f.send();
  CHECK(outcome.kind == OutcomeKind::NetworkFailed);
  CHECK(outcome.detail == "silent");
  CHECK(outcome.tries == 3);
}

TEST_CASE("What is final is not tried again", "[uploader]") {
  for (const int status : {301, 400, 401, 403, 404, 413}) {
    Fixture f;
    f.client.answer(status);
    CHECK(f.send().http_status == status);
    CHECK(f.client.requests.size() == 1);
  }
  Fixture f;
  f.client.fail(HttpFailureKind::TlsExpired);
  CHECK(f.send().kind == OutcomeKind::TlsFailed);
}

TEST_CASE("A rate limit is waited for", "[uploader]") {
  Fixture f;
  f.client.answer(429, "30:profile_chunk:org");
  f.client.answer(429, "", "90");
  f.client.answer(200);
  CHECK(f.send().kind == OutcomeKind::Accepted);
  CHECK(f.waiter.waits == std::vector<uint64_t>{30 * kNsPerSecond, 90 * kNsPerSecond});
}

TEST_CASE("Waits are told before they begin, with their reason", "[uploader]") {
  Fixture f;
  std::vector<Wait> told;
  f.uploader.on_wait([&](const Wait& wait) {
    CHECK(f.waiter.waits.size() == told.size());
    told.push_back(wait);
  });
  f.client.answer(500);
  f.client.answer(200, "30:profile_chunk:organization");
  f.client.answer(200);
  f.send();
  f.send();
  REQUIRE(told.size() == 2);
  CHECK(told[0].reason == WaitReason::FailedTry);
  CHECK(told[0].next_try == 2);
  CHECK(told[0].max_tries == UploaderOptions().retries.max_retries + 1);
  CHECK(told[1].reason == WaitReason::RateLimit);
  CHECK(told[1].duration_ns == 30 * kNsPerSecond);
  CHECK(told[1].next_try == 1);
}

TEST_CASE("A limit of other data does not hold an envelope up for long", "[uploader]") {
  Fixture f;
  f.client.answer(429, "3000:error:org");
  f.client.answer(200, "3000:transaction:org");
  f.client.answer(200);
  CHECK(f.send().kind == OutcomeKind::Accepted);
  CHECK(f.waiter.waits ==
        std::vector<uint64_t>{kNsPerSecond / 2});  // the back-off: 429 is still a no
  CHECK(f.send().kind == OutcomeKind::Accepted);
  CHECK(f.waiter.waits.size() == 1);
}

TEST_CASE("A limit that came with 200 holds for the next envelope", "[uploader]") {
  Fixture f;
  f.client.answer(200, "45:profile_chunk:org");
  f.client.answer(200);
  CHECK(f.send().kind == OutcomeKind::Accepted);
  CHECK(f.uploader.limited_for_ns(Category::ProfileChunk) == 45 * kNsPerSecond);
  CHECK(f.send().kind == OutcomeKind::Accepted);
  CHECK(f.waiter.waits == std::vector<uint64_t>{45 * kNsPerSecond});
}

TEST_CASE("A limit that is too long to wait for ends the try, and says when", "[uploader]") {
  Fixture f;
  f.client.answer(429, "301:profile_chunk:org");
  const Outcome outcome = f.send();
  CHECK(outcome.kind == OutcomeKind::RateLimited);
  CHECK(outcome.http_status == 429);
  CHECK(outcome.tries == 1);
  CHECK(outcome.retry_in_ns == 301 * kNsPerSecond);
  CHECK(f.waiter.waits.empty());

  const Outcome next = f.send();
  CHECK(next.kind == OutcomeKind::RateLimited);
  CHECK(next.tries == 0);  // not even sent
  CHECK(next.retry_in_ns == 301 * kNsPerSecond);
}

TEST_CASE("Waits for limits are bounded all together", "[uploader]") {
  Fixture f;
  f.client.answer(429, "200::org");
  f.client.answer(429, "200::org");
  const Outcome outcome = f.send();
  CHECK(outcome.kind == OutcomeKind::RateLimited);
  CHECK(outcome.tries == 2);
  CHECK(f.waiter.waits == std::vector<uint64_t>{200 * kNsPerSecond});
}

TEST_CASE("Where nobody waits for limits, the answer comes at once", "[uploader]") {
  UploaderOptions options;
  options.longest_limit_wait_ns = 0;
  Fixture f(options);
  f.client.answer(429);
  CHECK(f.send().retry_in_ns == 60 * kNsPerSecond);
  CHECK(f.waiter.waits.empty());
}

TEST_CASE("429 counts against the retries, so that a server that repeats it ends it",
          "[uploader]") {
  UploaderOptions options;
  options.retries.max_retries = 3;
  Fixture f(options);
  for (int i = 0; i < 4; ++i) f.client.answer(429, "0::org");
  const Outcome outcome = f.send();
  CHECK(outcome.kind == OutcomeKind::RateLimited);
  CHECK(outcome.tries == 4);
  CHECK(f.waiter.waits == std::vector<uint64_t>{kNsPerSecond / 2, kNsPerSecond, 2 * kNsPerSecond});
}

TEST_CASE("A wait that is cancelled ends it without another try", "[uploader]") {
  Fixture f;
  f.waiter.waits_allowed = 1;
  f.client.answer(500);
  f.client.answer(429, "60::org", "", "slow down");
  std::vector<OutcomeKind> told;
  f.uploader.on_failed_try([&](const Outcome& failed) { told.push_back(failed.kind); });
  const Outcome outcome = f.send();
  CHECK(outcome.kind == OutcomeKind::Cancelled);
  CHECK(outcome.tries == 2);
  CHECK(outcome.detail.empty());  // the server was not asked when it ended
  // Why it was not sent earlier is known at its first failure.
  CHECK(told == std::vector{OutcomeKind::ServerFailed, OutcomeKind::RateLimited});
}

TEST_CASE("A request that is cancelled ends it", "[uploader]") {
  Fixture f;
  f.client.fail(HttpFailureKind::Cancelled);
  CHECK(f.send().kind == OutcomeKind::Cancelled);
}

TEST_CASE("A server that quotes the key does not bring it into our messages", "[uploader]") {
  Fixture f;
  f.client.answer(403, "", "", "unknown key 0123456789ABCDEF");
  const Outcome outcome = f.send();
  CHECK(outcome.detail == "unknown key ***");
  CHECK(sentence(outcome, "h").find("0123456789") == std::string::npos);
}

TEST_CASE("No part of the key is shown, wherever a long answer is cut", "[uploader]") {
  Fixture f;
  for (size_t offset = 0; offset < 700; ++offset) {
    f.client.answer(413, "", "", std::string(offset, 'x') + "0123456789abcdef" + "yyyy");
    const Outcome outcome = f.send();
    if (outcome.detail.find("01") != std::string::npos) FAIL(offset << ": " << outcome.detail);
  }
}
