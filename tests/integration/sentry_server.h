// tests/support/sentry_server.py as a child of a test: answers by script, keeps what it received.
#pragma once

#include "process.h"
#include "temporary_directory.h"

#include <memory>
#include <string>
#include <vector>

namespace sentry_prof::testing {

// One request as the server got it.
struct KeptRequest {
  std::string facts;  // JSON: method, path, headers, connection, answer, whole
  std::string body;   // as it came over the wire
  // `text` stands in the facts. They are written by Python's json.dumps: {"a": 1, "b": "c"}.
  bool has(const std::string& text) const { return facts.find(text) != std::string::npos; }
};

class SentryServer {
 public:
  // `script` as sentry_server.py describes it. With a certificate (paths of PEM files) it speaks
  // https.
  explicit SentryServer(const std::string& script, const std::string& certificate = "",
                        const std::string& key = "");

  int port() const { return port_; }
  // "http[s]://127.0.0.1:PORT/api/42/envelope/"
  std::string url() const;
  // "http[s]://KEY@127.0.0.1:PORT/42"
  std::string dsn(const std::string& key) const;
  // What is complete so far, in the order of arrival.
  std::vector<KeptRequest> requests() const;

 private:
  std::string origin(const std::string& userinfo) const;

  TemporaryDirectory folder_;
  std::unique_ptr<BackgroundProcess> process_;
  bool is_encrypted_;
  int port_ = 0;
};

}  // namespace sentry_prof::testing
