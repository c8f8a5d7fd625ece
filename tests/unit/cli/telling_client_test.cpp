#include "cli/telling_client.h"

#include "cli/environment.h"
#include "support/catch2.h"

#include <string>

using namespace sentry_prof::cli;
using namespace sentry_prof::upload;
using sentry_prof::sentry::Dsn;

namespace {

const std::string kKey = "c0ffee00c0ffee00";

HttpRequest request() {
  return {"https://o1.example/api/42/envelope/",
          {{"X-Sentry-Auth", "Sentry sentry_key=" + kKey}, {"Content-Encoding", "gzip"}},
          "12345"};
}

std::string told(const HttpResult& result) {
  return request_text(request(), result, 12'345'678,
                      *Dsn::parse("https://" + kKey + "@o1.example/42"));
}

}  // namespace

TEST_CASE("A request is told with its size, status and time") {
  HttpReply reply;
  reply.status = 200;
  CHECK(told(reply) ==
        "POST https://o1.example/api/42/envelope/ (5 bytes, gzip): HTTP 200 in 12 ms");
}

TEST_CASE("Of a reply the headers that decide are told, without the key") {
  HttpReply reply;
  reply.status = 429;
  reply.retry_after = "5";
  reply.rate_limits = "60:profile_chunk:org";
  reply.sentry_error = "no " + kKey;
  reply.body = std::string(490, 'x') + kKey;
  const std::string text = told(reply);
  CHECK(text.find("; X-Sentry-Rate-Limits: 60:profile_chunk:org; Retry-After: 5; "
                  "X-Sentry-Error: no ***; body: xxx") != std::string::npos);
  CHECK(text.find(kKey.substr(0, 8)) == std::string::npos);
  CHECK(text.size() < 800);
}

TEST_CASE("A failure is told with its reason") {
  const HttpFailure failure{HttpFailureKind::Unreachable, "no connection (key " + kKey + ")."};
  CHECK(told(tl::unexpected(failure)) ==
        "POST https://o1.example/api/42/envelope/ (5 bytes, gzip): no answer after 12 ms: "
        "no connection (key ***).");
}

TEST_CASE("Yes is what Sentry's SDKs take for it") {
  for (const char* word : {"1", "true", "True", "TRUE", "t", "yes", "y", "on"}) CHECK(is_yes(word));
  for (const char* word : {"", "0", "false", "no", "off", "2", "yes "}) CHECK_FALSE(is_yes(word));
}
