// `sentry-prof upload` and the certificates of servers.
#include "sentry_server.h"
#include "support/catch2.h"
#include "test_certificates.h"
#include "upload_runs.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace sentry_prof::testing;

namespace {

CommandResult upload_to(const SentryServer& server, std::vector<std::string> more,
                        std::map<std::string, std::string> environment = {}) {
  const TemporaryDirectory directory;
  std::vector<std::string> arguments = {"upload", "--dsn", server.dsn(kKey), golden("v2")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_sentry_prof(arguments, directory, std::move(environment));
}

SentryServer server_with(const TestCertificates& certificates, const std::string& name) {
  return SentryServer("[200]", certificates.file(name + ".pem"), certificates.file(name + ".key"));
}

}  // namespace

TEST_CASE("A certificate that is not good ends an upload at once, with its own sentence",
          "[upload_tls]") {
  TestCertificates certificates;
  certificates.sign("good", "IP:127.0.0.1");
  certificates.sign("other", "DNS:other.example");
  certificates.sign("expired", "IP:127.0.0.1", "20200101000000Z", "20200201000000Z");
  certificates.sign("early", "IP:127.0.0.1", "20480101000000Z", "20490101000000Z");
  certificates.sign_by_itself("self", "IP:127.0.0.1");
  struct Case {
    const char* name;
    bool knows_authority;
    const char* sentence;
  };
  const Case cases[] = {
      {"other", true, "its certificate is for another host name."},
      {"expired", true, "its certificate has expired."},
      {"early", true, "its certificate is not valid yet."},
      {"self", true, "its certificate is self-signed."},
      {"good", false, "its certificate comes from an authority that is not known here."},
  };
  for (const Case& one : cases) {
    INFO(one.name);
    const SentryServer server = server_with(certificates, one.name);
    const std::string authority = one.knows_authority ? certificates.authority() : "";
    const CommandResult result = upload_to(server, {}, {{"SSL_CERT_FILE", authority}});
    INFO(result.standard_error);
    CHECK(result.status() == 6);
    CHECK(contains(result.standard_error, "no secure connection to 127.0.0.1: "));
    CHECK(contains(result.standard_error, one.sentence));
    CHECK_FALSE(contains(result.standard_error, "tries"));  // another try would fare no better
    CHECK(server.requests().empty());
  }
}

TEST_CASE("With a spool a chunk outlives a certificate that is not good", "[upload_tls]") {
  TestCertificates certificates;
  certificates.sign("good", "IP:127.0.0.1");
  const SentryServer server = server_with(certificates, "good");
  const TemporaryDirectory directory;
  const std::vector<std::string> send = {"upload", "--dsn", server.dsn(kKey), "--spool", "spool"};
  std::vector<std::string> keep = send;
  keep.push_back(golden("v2"));
  const CommandResult kept = run_sentry_prof(keep, directory);
  CHECK(kept.status() == 6);
  CHECK(contains(kept.standard_error, "1 left in spool"));
  CHECK(run_sentry_prof(send, directory, {{"SSL_CERT_FILE", certificates.authority()}}).status() ==
        0);
  CHECK(server.requests().size() == 1);
}

TEST_CASE("An own authority is named by an option, a config file or curl's variables",
          "[upload_tls]") {
  TestCertificates certificates;
  certificates.sign("good", "IP:127.0.0.1");
  const SentryServer server = server_with(certificates, "good");
  const std::string authority = certificates.authority();
  CHECK(upload_to(server, {"--ca-file", authority}).status() == 0);
  const std::string config = certificates.file("c.toml");
  std::ofstream(config) << "ca-file = \"" << authority << "\"\n";
  CHECK(upload_to(server, {"--config", config}).status() == 0);
  CHECK(upload_to(server, {}, {{"SSL_CERT_FILE", authority}}).status() == 0);
  CHECK(upload_to(server, {}, {{"CURL_CA_BUNDLE", authority}, {"SSL_CERT_FILE", "/nowhere"}})
            .status() == 0);
  CHECK(server.requests().size() == 4);

  const CommandResult missing = upload_to(server, {"--ca-file", "/nowhere/ca.pem"});
  CHECK(missing.status() == 2);
  CHECK(contains(missing.standard_error, "/nowhere/ca.pem"));
  CHECK(server.requests().size() == 4);
}
