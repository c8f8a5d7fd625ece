// Shows every envelope also to a local Spotlight.
#pragma once

#include "upload/http.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace sentry_prof::cli {

// "1", "true" and the like mean the usual local address; a URL is taken as it is; empty for none.
std::string spotlight_url(const std::string& variable);

class SpotlightClient final : public upload::HttpClient {
 public:
  // `spotlight` null: passes on only. Both must outlive it.
  SpotlightClient(upload::HttpClient& client, upload::HttpClient* spotlight, std::string url)
      : client_(client), spotlight_(spotlight), url_(std::move(url)) {}

  // Spotlight gets the first try of each envelope behind the server, without the key. One that does
  // not answer is told once, and left alone for a while.
  upload::HttpResult post(const upload::HttpRequest& request) override;

 private:
  void show(const upload::HttpRequest& request);

  upload::HttpClient& client_;
  upload::HttpClient* spotlight_;
  std::string url_;
  size_t shown_ = 0;  // hash of the last envelope
  uint64_t away_until_ns_ = 0;
  bool is_told_ = false;
};

}  // namespace sentry_prof::cli
