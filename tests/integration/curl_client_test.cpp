// The HTTP client against a real server that misbehaves by script.
#include "upload/curl_client.h"

#include "environment_guard.h"
#include "prerequisites.h"
#include "process.h"
#include "sentry_server.h"
#include "support/catch2.h"
#include "test_certificates.h"
#include "text_file.h"
#include "upload/curl_failure.h"
#include "upload/curl_library.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace sentry_prof::testing;
using namespace sentry_prof::upload;

namespace {

// No proxy or bundle of the machine gets between client and server.
class NoProxies {
 public:
  NoProxies() {
    for (const char* name :
         {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
          "NO_PROXY", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"}) {
      environment.unset(name);
    }
  }
  EnvironmentGuard environment;
};

std::unique_ptr<CurlClient> make_client(CurlOptions options = {}) {
  auto client = CurlClient::create(std::move(options));
  REQUIRE(client);
  return std::move(*client);
}

CurlOptions with_authority(const std::string& file) {
  CurlOptions options;
  options.ca_file = file;
  return options;
}

HttpRequest request_to(const std::string& url, std::string_view body = "hello") {
  HttpRequest request;
  request.url = url;
  request.headers = {{"Content-Type", "application/x-sentry-envelope"},
                     {"X-Sentry-Auth", "Sentry sentry_key=KEYKEY"}};
  request.body = body;
  return request;
}

HttpReply reply_of(const SentryServer& server, CurlOptions options = {}) {
  const HttpResult result = make_client(std::move(options))->post(request_to(server.url()));
  INFO((result ? std::string() : result.error().message));
  REQUIRE(result);
  return *result;
}

HttpFailure failure_at(const std::string& url, CurlOptions options = {}) {
  const HttpResult result = make_client(std::move(options))->post(request_to(url));
  REQUIRE_FALSE(result);
  CHECK(result.error().message.find("KEYKEY") == std::string::npos);
  CHECK(result.error().message.ends_with('.'));
  return result.error();
}

HttpFailure failure_of_action(const std::string& action, CurlOptions options = {}) {
  const SentryServer server(R"([{"do": ")" + action + R"("}])");
  return failure_at(server.url(), std::move(options));
}

}  // namespace

TEST_CASE("A request arrives whole, with its headers", "[curl_client]") {
  const NoProxies none;
  const SentryServer server("[200]");
  std::string body(5'000'000, 'x');
  body[0] = '\0';
  body.back() = '\xff';
  const HttpResult result = make_client()->post(request_to(server.url(), body));
  REQUIRE(result);
  CHECK(result->status == 200);
  CHECK(result->body == "{}");
  const auto requests = server.requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].body == body);
  CHECK(requests[0].has(R"("method": "POST", "path": "/api/42/envelope/")"));
  CHECK(requests[0].has(R"("content-type": "application/x-sentry-envelope")"));
  CHECK(requests[0].has(R"("x-sentry-auth": "Sentry sentry_key=KEYKEY")"));
  CHECK_FALSE(requests[0].has("accept-encoding"));
  CHECK_FALSE(requests[0].has("expect"));
}

TEST_CASE("Requests share a connection", "[curl_client]") {
  const NoProxies none;
  const SentryServer server("[200, 500, 429, 200]");
  const auto client = make_client();
  for (const int status : {200, 500, 429, 200}) {
    const HttpResult result = client->post(request_to(server.url()));
    REQUIRE(result);
    CHECK(result->status == status);
  }
  const auto requests = server.requests();
  REQUIRE(requests.size() == 4);
  for (const KeptRequest& request : requests) CHECK(request.has(R"("connection": 1,)"));
}

TEST_CASE("The headers that matter come along, whatever the status", "[curl_client]") {
  const NoProxies none;
  const SentryServer server(R"([{"status": 503, "body": "busy", "headers": {
    "x-sentry-RATE-limits": ["60:profile:org", "30:profile_chunk:org"], "Retry-After": " 17 ",
    "Date": "Mon, 05 Jan 2026 12:00:00 GMT", "X-Sentry-Error": "no project", "X-Other": "1"}}])");
  const HttpReply reply = reply_of(server);
  CHECK(reply.status == 503);
  CHECK(reply.rate_limits == "60:profile:org, 30:profile_chunk:org");
  CHECK(reply.retry_after == "17");
  CHECK(reply.date == "Mon, 05 Jan 2026 12:00:00 GMT");
  CHECK(reply.sentry_error == "no project");
  CHECK(reply.body == "busy");
}

TEST_CASE("A redirect is not followed", "[curl_client]") {
  const NoProxies none;
  const SentryServer elsewhere("[200]");
  const SentryServer server(R"([{"status": 307, "headers": {"Location": ")" + elsewhere.url() +
                            R"("}}])");
  const HttpReply reply = reply_of(server);
  CHECK(reply.status == 307);
  CHECK(reply.location == elsewhere.url());
  CHECK(elsewhere.requests().empty());
}

TEST_CASE("A lost connection is told from a bad answer", "[curl_client]") {
  const NoProxies none;
  CHECK(failure_of_action("reset").kind == HttpFailureKind::ConnectionLost);
  CHECK(failure_of_action("close").kind == HttpFailureKind::ConnectionLost);
  CHECK(failure_of_action("half-head").kind == HttpFailureKind::ConnectionLost);
  CHECK(failure_of_action("garbage").kind == HttpFailureKind::BadReply);
}

TEST_CASE("A connection lost in the middle of the body is a lost connection", "[curl_client]") {
  const NoProxies none;
  const SentryServer server(R"([{"do": "reset-early"}])");
  const std::string body(20'000'000, 'x');
  const HttpResult result = make_client()->post(request_to(server.url(), body));
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == HttpFailureKind::ConnectionLost);
}

TEST_CASE("An answer is known by its head, even if its body is cut off", "[curl_client]") {
  const NoProxies none;
  const HttpReply reply = reply_of(SentryServer(R"([{"do": "half-body"}])"));
  CHECK(reply.status == 200);
  CHECK(reply.body == R"({"id":)");
}

TEST_CASE("A silent server and one that stops reading are given up", "[curl_client]") {
  const NoProxies none;
  CurlOptions impatient;
  impatient.stall_time_s = 1;
  CHECK(failure_of_action("stall", impatient).kind == HttpFailureKind::TimedOut);

  const SentryServer server(R"([{"do": "stall-early"}])");
  const std::string body(50'000'000, 'x');
  const HttpResult result = make_client(impatient)->post(request_to(server.url(), body));
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == HttpFailureKind::TimedOut);
}

TEST_CASE("The whole request has a time-out of its own", "[curl_client]") {
  const NoProxies none;
  CurlOptions options;
  options.whole_time_out_s = 1;
  CHECK(failure_of_action("stall", options).kind == HttpFailureKind::TimedOut);
  const HttpFailure endless = failure_of_action("continues", options);
  CHECK((endless.kind == HttpFailureKind::TimedOut || endless.kind == HttpFailureKind::BadReply));
}

TEST_CASE("Of an answer without an end 64 KiB are read, and none of it is expanded",
          "[curl_client]") {
  const NoProxies none;
  CHECK(reply_of(SentryServer(R"([{"do": "endless"}])")).body ==
        std::string(kMaxReplyBody_bytes, 'x'));
  const HttpReply bomb = reply_of(SentryServer(R"([{"do": "bomb"}])"));
  CHECK(bomb.body.size() == kMaxReplyBody_bytes);
  CHECK(bomb.body.starts_with("\x1f\x8b"));
}

TEST_CASE("Headers without an end are refused", "[curl_client]") {
  const NoProxies none;
  CHECK(failure_of_action("header-flood").kind == HttpFailureKind::BadReply);
  CHECK(failure_of_action("long-header").kind == HttpFailureKind::BadReply);
}

TEST_CASE("Where nobody listens there is no connection", "[curl_client]") {
  const NoProxies none;
  // Port 1 (tcpmux) is reserved and unused.
  CHECK(failure_at("http://127.0.0.1:1/api/42/envelope/").kind == HttpFailureKind::Unreachable);
}

TEST_CASE("A server that restarts is there again", "[curl_client]") {
  const NoProxies none;
  const SentryServer server(R"([200, {"do": "restart", "seconds": 1.5}, 200])");
  const auto client = make_client();
  CHECK(client->post(request_to(server.url())));
  // Fails, or is tried again by curl on a connection that came just before the server went.
  const bool is_taken = client->post(request_to(server.url())).has_value();
  CHECK(
      (is_taken || wait_until([&] { return client->post(request_to(server.url())).has_value(); })));
  CHECK(client->post(request_to(server.url())));
}

TEST_CASE("Cancelling ends a request that would wait", "[curl_client]") {
  const NoProxies none;
  const SentryServer server(R"([{"do": "stall"}])");
  CurlOptions options;
  options.is_cancelled = [&] { return !server.requests().empty(); };
  CHECK(failure_at(server.url(), options).kind == HttpFailureKind::Cancelled);
}

TEST_CASE("What is cancelled says how long the server had been silent", "[curl_client]") {
  const NoProxies none;
  const SentryServer server(R"([{"do": "stall"}])");
  const auto seconds = GENERATE(0, 1);
  CurlOptions options;
  options.is_cancelled = [&, end_s = now_s() + seconds] { return now_s() >= end_s; };
  CHECK(failure_at(server.url(), options).message ==
        (seconds == 0 ? "had not answered yet." : "had not answered after 1 s."));
}

TEST_CASE("After a cancelled request the next one goes on a new connection", "[curl_client]") {
  const NoProxies none;
  const SentryServer server(R"([{"do": "stall"}, 200])");
  bool may_be_cancelled = true;
  CurlOptions options;
  options.is_cancelled = [&] { return may_be_cancelled && !server.requests().empty(); };
  const auto client = make_client(options);
  CHECK_FALSE(client->post(request_to(server.url())));
  may_be_cancelled = false;
  CHECK(client->post(request_to(server.url())));
}

TEST_CASE("Only http and https are spoken", "[curl_client]") {
  const NoProxies none;
  CHECK(failure_at("file:///etc/passwd").kind == HttpFailureKind::Misconfigured);
  CHECK(failure_at("ftp://127.0.0.1/x").kind == HttpFailureKind::Misconfigured);
  CHECK(failure_at("http://user@127.0.0.1/x").kind != HttpFailureKind::Unreachable);
}

TEST_CASE("A certificate of a known authority is accepted", "[tls]") {
  NoProxies none;
  TestCertificates certificates;
  certificates.sign("good", "IP:127.0.0.1");
  const SentryServer server("[200]", certificates.file("good.pem"), certificates.file("good.key"));
  CHECK(reply_of(server, with_authority(certificates.authority())).status == 200);

  none.environment.set("SSL_CERT_FILE", certificates.authority());
  CHECK(reply_of(server).status == 200);
  none.environment.set("SSL_CERT_FILE", "/nowhere");
  none.environment.set("CURL_CA_BUNDLE", certificates.authority());
  CHECK(reply_of(server).status == 200);
}

TEST_CASE("Each fault of a certificate is refused with words of its own", "[tls]") {
  const NoProxies none;
  TestCertificates certificates;
  certificates.sign("good", "IP:127.0.0.1");
  certificates.sign("other", "DNS:other.example");
  certificates.sign("expired", "IP:127.0.0.1", "20200101000000Z", "20200201000000Z");
  certificates.sign("early", "IP:127.0.0.1", "20480101000000Z", "20490101000000Z");
  certificates.sign_by_itself("self", "IP:127.0.0.1");

  struct Case {
    const char* name;
    bool knows_authority;
    HttpFailureKind kind;
    const char* words;
  };
  const Case cases[] = {
      {"other", true, HttpFailureKind::TlsWrongHost, "another host name"},
      {"expired", true, HttpFailureKind::TlsExpired, "has expired"},
      {"early", true, HttpFailureKind::TlsExpired, "not valid yet"},
      {"self", true, HttpFailureKind::TlsUntrusted, "self-signed"},
      {"good", false, HttpFailureKind::TlsUntrusted, "authority that is not known"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const std::string name = c.name;
    const SentryServer server("[200]", certificates.file(name + ".pem"),
                              certificates.file(name + ".key"));
    const HttpFailure failure = failure_at(
        server.url(), c.knows_authority ? with_authority(certificates.authority()) : CurlOptions());
    CHECK(failure.kind == c.kind);
    CHECK(failure.message.find(c.words) != std::string::npos);
    CHECK(server.requests().empty());
  }
}

TEST_CASE("A port without TLS, and a file of authorities that is none, are told", "[tls]") {
  const NoProxies none;
  const SentryServer plain("[200]");
  const std::string url = "https" + plain.url().substr(4);
  CHECK(failure_at(url).kind == HttpFailureKind::TlsOther);
  CHECK(plain.requests().empty());

  TestCertificates certificates;
  certificates.sign("good", "IP:127.0.0.1");
  const SentryServer server("[200]", certificates.file("good.pem"), certificates.file("good.key"));
  const HttpFailure failure = failure_at(server.url(), with_authority("/nowhere/ca.pem"));
  CHECK(failure.kind == HttpFailureKind::Misconfigured);
  CHECK(failure.message.find("/nowhere/ca.pem") != std::string::npos);
}

TEST_CASE("HTTP/2 is spoken with a server that offers it, on one connection", "[http2]") {
  const NoProxies none;
  if (const auto missing = missing_program("node")) return note_optional_skip(*missing);
  const auto library = load_curl();
  REQUIRE(library);
  if (((*library)->version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2) == 0) {
    return note_optional_skip("this libcurl has no HTTP/2");
  }
  TestCertificates certificates;
  certificates.sign("good", "IP:127.0.0.1");
  const TemporaryDirectory folder;
  const BackgroundProcess server(
      {.arguments = {"node", SENTRY_PROF_HTTP2_SERVER, folder.path(), certificates.file("good.pem"),
                     certificates.file("good.key")}});
  REQUIRE(wait_until([&] { return !contents_of(folder.file("port")).empty(); }));
  const std::string url =
      "https://127.0.0.1:" + contents_of(folder.file("port")) + "/api/42/envelope/";

  const auto client = make_client(with_authority(certificates.authority()));
  for (int i = 0; i < 2; ++i) {
    const HttpResult result = client->post(request_to(url));
    REQUIRE(result);
    CHECK(result->status == 200);
    CHECK(result->rate_limits == "60:profile_chunk:org");
    CHECK(result->body == "{}");
  }
  const std::string first = contents_of(folder.file("1.json"));
  CHECK(first.starts_with(R"({"version":"2.0","from":)"));
  CHECK(first.ends_with(R"("type":"application/x-sentry-envelope","body":"hello"})"));
  CHECK(contents_of(folder.file("2.json")) == first);
}

TEST_CASE("Proxies are taken from the environment, NO_PROXY included", "[proxy]") {
  NoProxies none;
  const SentryServer proxy("[200]");
  const std::string address = "http://127.0.0.1:" + std::to_string(proxy.port());
  none.environment.set("http_proxy", address);
  REQUIRE(make_client()->post(request_to("http://sentry.invalid/api/1/envelope/")));
  REQUIRE(proxy.requests().size() == 1);
  CHECK(proxy.requests()[0].has(R"("path": "http://sentry.invalid/api/1/envelope/")"));

  const SentryServer server("[200]");
  none.environment.set("NO_PROXY", "example.com,127.0.0.1");
  CHECK(reply_of(server).status == 200);
  CHECK(server.requests().size() == 1);
  CHECK(proxy.requests().size() == 1);
}

TEST_CASE("A proxy of https is asked to connect, and does not see the key", "[proxy]") {
  NoProxies none;
  const SentryServer proxy("[407, 403]");
  none.environment.set("HTTPS_PROXY",
                       "http://user:PASSWORD@127.0.0.1:" + std::to_string(proxy.port()));
  const HttpFailure unauthorized = failure_at("https://sentry.invalid/api/1/envelope/");
  CHECK(unauthorized.kind == HttpFailureKind::Misconfigured);
  CHECK(unauthorized.message.find("HTTPS_PROXY") != std::string::npos);
  CHECK(unauthorized.message.find("PASSWORD") == std::string::npos);
  const HttpFailure refused = failure_at("https://sentry.invalid/api/1/envelope/");
  CHECK(refused.kind == HttpFailureKind::Unreachable);
  CHECK(refused.message.find("403") != std::string::npos);
  const auto requests = proxy.requests();
  REQUIRE(requests.size() == 2);
  for (const KeptRequest& request : requests) {
    CHECK(request.has(R"("method": "CONNECT", "path": "sentry.invalid:443")"));
    CHECK_FALSE(request.has("KEYKEY"));
  }
}

TEST_CASE("A proxy's variable that holds no URL is the user's to mend", "[proxy]") {
  NoProxies none;
  const char* value =
      GENERATE("ht!tp://user:PASSWORD@127.0.0.1:9", "http://user:PASSWORD@127.0.0.1:99999",
               "foo://user:PASSWORD@127.0.0.1:9", "::::");
  INFO(value);
  none.environment.set("http_proxy", value);
  const HttpFailure failure = failure_at("http://sentry.invalid/api/1/envelope/");
  CHECK(failure.kind == HttpFailureKind::Misconfigured);
  CHECK(failure.message.find("http_proxy ") == 0);
  CHECK(failure.message.find("PASSWORD") == std::string::npos);
}

TEST_CASE("A failed connection names the variable whose proxy it went through", "[proxy]") {
  NoProxies none;
  const auto says = [](const std::string& url, const std::string& words) {
    const HttpFailure failure = failure_at(url);
    INFO(failure.message);
    return failure.message.find(words) != std::string::npos;
  };
  const std::string nobody = "http://user:PASSWORD@127.0.0.1:1";
  const std::string server = "http://sentry.invalid/api/1/envelope/";
  none.environment.set("ALL_PROXY", nobody);
  CHECK(says(server, "no connection through the proxy of ALL_PROXY"));
  none.environment.set("http_proxy", nobody);
  CHECK(says(server, "no connection through the proxy of http_proxy"));
  none.environment.set("HTTPS_PROXY", nobody);
  CHECK(says("https://sentry.invalid/", "no connection through the proxy of HTTPS_PROXY"));
  none.environment.set("NO_PROXY", "127.0.0.1");
  CHECK_FALSE(says("http://127.0.0.1:1/", "proxy"));
  none.environment.set("http_proxy", "http://proxy.invalid:1");
  CHECK(says(server, "Look at http_proxy."));

  const SentryServer closing(R"([{"do": "close"}])");
  none.environment.set("http_proxy", "http://127.0.0.1:" + std::to_string(closing.port()));
  CHECK(says(server, "the connection through the proxy of http_proxy was lost"));
}

TEST_CASE("Codes of libcurl that are hard to provoke have their kinds, too", "[curl_client]") {
  const auto kind = [](CURLcode code, bool was_connected = false) {
    CurlFacts facts;
    facts.code = code;
    facts.was_connected = was_connected;
    return failure_of(facts).kind;
  };
  CHECK(kind(CURLE_COULDNT_RESOLVE_HOST) == HttpFailureKind::Unresolved);
  CHECK(kind(CURLE_COULDNT_RESOLVE_PROXY) == HttpFailureKind::Unresolved);
  CHECK(kind(CURLE_OPERATION_TIMEDOUT) == HttpFailureKind::Unreachable);
  CHECK(kind(CURLE_OPERATION_TIMEDOUT, true) == HttpFailureKind::TimedOut);
  CHECK(kind(CURLE_SSL_CIPHER) == HttpFailureKind::TlsOther);
  CHECK(kind(static_cast<CURLcode>(100)) == HttpFailureKind::BadReply);  // CURLE_TOO_LARGE of 8.6
  CHECK(kind(CURLE_HTTP2_STREAM) == HttpFailureKind::ConnectionLost);
  CurlFacts no_https_proxies;
  no_https_proxies.code = CURLE_NOT_BUILT_IN;
  no_https_proxies.text =
      "Unsupported proxy 'https://u:PASSWORD@p', libcurl is built without the HTTPS-proxy support.";
  CHECK(failure_of(no_https_proxies).kind == HttpFailureKind::Misconfigured);
  CHECK(failure_of(no_https_proxies).message.find("PASSWORD") == std::string::npos);
}
