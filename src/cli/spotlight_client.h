// Shows every envelope also to a local Spotlight.
#pragma once

#include "upload/http.h"

#include <cstddef>
#include <string>

namespace sentry_prof::cli {

// "1", "true" and the like mean the usual local address; a URL is taken as it is; empty for none.
std::string spotlight_url(const std::string& variable);

class SpotlightClient final : public upload::HttpClient {
 public:
  // `url` empty: passes on only. `client` must outlive it.
  SpotlightClient(upload::HttpClient& client, std::string url)
      : client_(client), url_(std::move(url)) {}

  // Spotlight gets the first try of each envelope, without the key; its trouble is nobody's.
  upload::HttpResult post(const upload::HttpRequest& request) override;

 private:
  upload::HttpClient& client_;
  std::string url_;
  size_t shown_ = 0;  // hash of the last envelope
};

}  // namespace sentry_prof::cli
