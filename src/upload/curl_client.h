// HTTP by libcurl: HTTP/2 over TLS where the server has it, else HTTP/1.1, with connections that
// are kept.
//
// Never followed: redirects (the key would go along). Never expanded: answers. Never off:
// verification. Proxies: libcurl's conventions (HTTPS_PROXY, http_proxy, ALL_PROXY, NO_PROXY).
// Authorities: those of the curl program (CURL_CA_BUNDLE, else SSL_CERT_FILE and SSL_CERT_DIR, else
// the system's).
#pragma once

#include "sentry_prof/result.h"
#include "upload/http.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace sentry_prof::upload {

struct CurlOptions {
  uint32_t connect_time_out_s = 10;
  // Slower than this over so long, or silent: given up.
  uint32_t stall_bytes_per_s = 100;
  uint32_t stall_time_s = 30;
  // 50 MB at 1 Mbit/s take 400 s.
  uint32_t whole_time_out_s = 600;
  // No proxy for localhost, besides what NO_PROXY names.
  bool passes_proxy_for_local = false;
  std::string ca_file;  // --ca-file; empty: from the environment
  // Asked several times a second while a request runs; true ends it as Cancelled. May be empty.
  std::function<bool()> is_cancelled;
};

// For one thread. The first of a process must be made before other threads run.
class CurlClient final : public HttpClient {
 public:
  // Unsupported if this libcurl cannot do TLS; LimitExceeded without memory.
  static Result<std::unique_ptr<CurlClient>> create(CurlOptions options);
  ~CurlClient() override;

  HttpResult post(const HttpRequest& request) override;

 private:
  struct Impl;
  explicit CurlClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sentry_prof::upload
