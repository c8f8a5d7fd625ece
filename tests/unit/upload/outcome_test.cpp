#include "upload/outcome.h"

#include "support/catch2.h"

#include <string>

using namespace sentry_prof::upload;

namespace {

Outcome of_status(int status, std::string body = "") {
  HttpReply reply;
  reply.status = status;
  reply.body = std::move(body);
  return outcome_of(reply);
}

Outcome of_failure(HttpFailureKind kind) { return outcome_of(HttpFailure{kind, "why"}); }

}  // namespace

TEST_CASE("Each status has its outcome and its exit code", "[outcome]") {
  struct Case {
    int status;
    OutcomeKind kind;
    int code;
  };
  const Case cases[] = {
      {200, OutcomeKind::Accepted, 0},      {202, OutcomeKind::Accepted, 0},
      {301, OutcomeKind::Misconfigured, 2}, {308, OutcomeKind::Misconfigured, 2},
      {400, OutcomeKind::Misconfigured, 2}, {401, OutcomeKind::Unauthorized, 3},
      {403, OutcomeKind::Unauthorized, 3},  {404, OutcomeKind::Misconfigured, 2},
      {407, OutcomeKind::Misconfigured, 2}, {408, OutcomeKind::ServerFailed, 6},
      {405, OutcomeKind::Misconfigured, 2}, {410, OutcomeKind::Misconfigured, 2},
      {402, OutcomeKind::Misconfigured, 2}, {499, OutcomeKind::Misconfigured, 2},
      {425, OutcomeKind::ServerFailed, 6},  {413, OutcomeKind::TooLarge, 4},
      {429, OutcomeKind::RateLimited, 5},   {500, OutcomeKind::ServerFailed, 6},
      {503, OutcomeKind::ServerFailed, 6},  {101, OutcomeKind::ServerFailed, 6},
      {999, OutcomeKind::ServerFailed, 6},
  };
  for (const Case& c : cases) {
    INFO(c.status);
    CHECK(of_status(c.status).kind == c.kind);
    CHECK(of_status(c.status).http_status == c.status);
    CHECK(exit_code(c.kind) == c.code);
  }
}

TEST_CASE("Only in Sentry's form a 4xx is a verdict on the envelope", "[outcome]") {
  HttpReply reply;
  reply.sentry_error = "bad envelope";
  for (const int status : {400, 402, 411, 414, 415, 417, 422, 423, 431, 499}) {
    INFO(status);
    CHECK(of_status(status, R"( {"detail":"bad envelope"})").kind == OutcomeKind::Refused);
    reply.status = status;
    CHECK(outcome_of(reply).kind == OutcomeKind::Refused);
    for (const char* body : {"", "{}", R"({"message":"Payment Required"})", "Length Required"}) {
      CHECK(of_status(status, body).kind == OutcomeKind::Misconfigured);
    }
  }
}

TEST_CASE("A page in HTML is no server's word that it took anything", "[outcome]") {
  CHECK(of_status(200, "\n<html>Log in to the network</html>").kind == OutcomeKind::Misconfigured);
  CHECK(of_status(200, R"({"id":"4c79f60c11214eb38604f4ae0781bfb2"})").kind ==
        OutcomeKind::Accepted);
  CHECK(of_status(200, "ok").kind == OutcomeKind::Accepted);
  CHECK(of_status(406, "<html>Blocked</html>").kind == OutcomeKind::Misconfigured);
  CHECK(of_status(413, "<html>Too large</html>").kind == OutcomeKind::Misconfigured);
  CHECK(of_status(413, "").kind == OutcomeKind::TooLarge);
}

TEST_CASE("What was answered, or broke off, may be of this envelope only", "[outcome]") {
  for (const int status : {403, 404, 413, 429, 500}) {
    INFO(status);
    CHECK(may_be_of_one(of_status(status)));
  }
  CHECK(may_be_of_one(of_failure(HttpFailureKind::ConnectionLost)));
  CHECK(may_be_of_one(of_failure(HttpFailureKind::TimedOut)));
  CHECK(may_be_of_one(of_failure(HttpFailureKind::BadReply)));
  for (const auto kind :
       {HttpFailureKind::Unresolved, HttpFailureKind::Unreachable, HttpFailureKind::TlsExpired,
        HttpFailureKind::Misconfigured, HttpFailureKind::Cancelled}) {
    CHECK_FALSE(may_be_of_one(of_failure(kind)));
  }
}

TEST_CASE("Each failure has its outcome and its exit code", "[outcome]") {
  CHECK(of_failure(HttpFailureKind::Unresolved).kind == OutcomeKind::NetworkFailed);
  CHECK(of_failure(HttpFailureKind::Unreachable).kind == OutcomeKind::NetworkFailed);
  CHECK(of_failure(HttpFailureKind::TimedOut).kind == OutcomeKind::NetworkFailed);
  CHECK(of_failure(HttpFailureKind::ConnectionLost).kind == OutcomeKind::NetworkFailed);
  CHECK(of_failure(HttpFailureKind::BadReply).kind == OutcomeKind::ServerFailed);
  CHECK(of_failure(HttpFailureKind::TlsWrongHost).kind == OutcomeKind::TlsFailed);
  CHECK(of_failure(HttpFailureKind::TlsExpired).kind == OutcomeKind::TlsFailed);
  CHECK(of_failure(HttpFailureKind::TlsUntrusted).kind == OutcomeKind::TlsFailed);
  CHECK(of_failure(HttpFailureKind::TlsOther).kind == OutcomeKind::TlsFailed);
  CHECK(of_failure(HttpFailureKind::Misconfigured).kind == OutcomeKind::Misconfigured);
  CHECK(of_failure(HttpFailureKind::Cancelled).kind == OutcomeKind::Cancelled);
  CHECK(exit_code(OutcomeKind::NetworkFailed) == 6);
  CHECK(exit_code(OutcomeKind::TlsFailed) == 6);
}

TEST_CASE("Only what may end otherwise is tried again", "[outcome]") {
  for (const int status : {408, 425, 429, 500, 502, 503, 504})
    CHECK(is_worth_retrying(of_status(status).kind));
  for (const int status : {200, 302, 400, 401, 403, 413})
    CHECK_FALSE(is_worth_retrying(of_status(status).kind));
  CHECK(is_worth_retrying(OutcomeKind::NetworkFailed));
  CHECK_FALSE(is_worth_retrying(OutcomeKind::TlsFailed));
  CHECK_FALSE(is_worth_retrying(OutcomeKind::Cancelled));
}

TEST_CASE("An envelope is done with only when the server has judged it", "[outcome]") {
  for (const int status : {200, 413}) CHECK(is_final(of_status(status).kind));
  for (const int status : {301, 401, 402, 403, 404, 405, 410, 415, 425, 429, 500})
    CHECK_FALSE(is_final(of_status(status).kind));
  CHECK(is_final(of_status(400, R"( {"detail":"bad envelope"})").kind));
  // The envelope is good: the DSN is not.
  const Outcome bad_key =
      of_status(400, R"({"detail":"bad sentry DSN public key","causes":["invalid project key"]})");
  CHECK(bad_key.kind == OutcomeKind::Unauthorized);
  CHECK_FALSE(is_final(bad_key.kind));
  CHECK_FALSE(may_be_of_one(bad_key));
  HttpReply reply;
  reply.status = 400;
  reply.sentry_error = "bad envelope";
  CHECK(is_final(outcome_of(reply).kind));
  // nginx, spoken to without TLS
  const char* page = "<html>400 The plain HTTP request was sent to HTTPS port</html>";
  CHECK(of_status(400, page).kind == OutcomeKind::Misconfigured);
  CHECK_FALSE(is_final(OutcomeKind::NetworkFailed));
  CHECK_FALSE(is_final(OutcomeKind::TlsFailed));
  CHECK_FALSE(is_final(OutcomeKind::Cancelled));
}

TEST_CASE("What the server says is shown printable and short", "[outcome]") {
  CHECK(of_status(400, "bad \x1b[31menvelope\n").detail ==
        "bad \xef\xbf\xbd[31menvelope\xef\xbf\xbd");
  CHECK(of_status(400, std::string(60000, 'x')).detail.size() <= 300);
  CHECK(of_status(200, "{}").detail.empty());

  HttpReply reply;
  reply.status = 400;
  reply.body = "body";
  reply.sentry_error = "auth mismatch";
  CHECK(outcome_of(reply).detail == "auth mismatch");
}

TEST_CASE("Sentences say who, what and the next step", "[outcome]") {
  CHECK(sentence(of_status(200), "h") == "accepted by h.");
  CHECK(sentence(of_status(400, R"({"detail":"bad"})"), "h") ==
        R"(h refused it (HTTP 400: {"detail":"bad"}).)");
  CHECK(sentence(of_status(404), "h").find("h takes no envelopes at this address (HTTP 404)") == 0);
  CHECK(
      sentence(of_status(403), "h") ==
      "h does not accept the DSN (HTTP 403). Compare it with the project's settings, \"Client Keys "
      "(DSN)\".");
  CHECK(sentence(of_status(413), "h").find("--chunk-seconds") != std::string::npos);

  HttpReply redirect;
  redirect.status = 302;
  redirect.location = "https://elsewhere/";
  CHECK(sentence(outcome_of(redirect), "h")
            .find("h redirects elsewhere (HTTP 302: https://elsewhere/)") == 0);

  Outcome failed = of_status(503, "overloaded");
  failed.tries = 6;
  CHECK(sentence(failed, "h") == "h failed after 6 tries (HTTP 503: overloaded). Try again later.");
  CHECK(sentence(of_failure(HttpFailureKind::Unreachable), "h") == "h could not be reached: why");
  CHECK(sentence(of_failure(HttpFailureKind::TimedOut), "h") ==
        "h did not answer as it should: why It may have taken it all the same.");
  CHECK(sentence(of_failure(HttpFailureKind::TlsExpired), "h") == "no secure connection to h: why");
}

TEST_CASE("What was interrupted says how long the server had been silent", "[outcome]") {
  const HttpFailure silent{HttpFailureKind::Cancelled, "had not answered after 3 s."};
  CHECK(sentence(outcome_of(silent), "h") ==
        "not sent: it was interrupted. h had not answered after 3 s.");
  Outcome between_tries;
  between_tries.kind = OutcomeKind::Cancelled;
  CHECK(sentence(between_tries, "h") == "not sent: it was interrupted.");
}

TEST_CASE("A limit is told with its end", "[outcome]") {
  Outcome limited = of_status(429);
  CHECK(sentence(limited, "h") == "h wants no more of this for now (HTTP 429). Try again later.");
  limited.http_status = 0;
  limited.retry_in_ns = 59'000'000'001;
  CHECK(sentence(limited, "h") == "h wants no more of this for now. Try again in 60 s.");
  limited.retry_in_ns = 601'000'000'000;
  CHECK(sentence(limited, "h") == "h wants no more of this for now. Try again in 11 min.");
  limited.retry_in_ns = 86'400'000'000'000;
  CHECK(sentence(limited, "h") == "h wants no more of this for now. Try again in 24 h 0 min.");
}
