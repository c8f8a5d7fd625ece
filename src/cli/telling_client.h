// Tells on standard error what becomes of every request: --verbose, SENTRY_DEBUG.
#pragma once

#include "sentry/dsn.h"
#include "upload/http.h"

#include <cstdint>
#include <string>
#include <utility>

namespace sentry_prof::cli {

// "POST https://host/api/42/envelope/ (1234 bytes, gzip): HTTP 429 in 12 ms; Retry-After: 5". No
// header of the request; of the reply those that decide, without the key if they quote it.
std::string request_text(const upload::HttpRequest& request, const upload::HttpResult& result,
                         uint64_t duration_ns, const sentry::Dsn& dsn);

class TellingClient final : public upload::HttpClient {
 public:
  // `client` must outlive it.
  TellingClient(upload::HttpClient& client, sentry::Dsn dsn)
      : client_(client), dsn_(std::move(dsn)) {}
  upload::HttpResult post(const upload::HttpRequest& request) override;

 private:
  upload::HttpClient& client_;
  sentry::Dsn dsn_;
};

}  // namespace sentry_prof::cli
