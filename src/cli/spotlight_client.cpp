#include "cli/spotlight_client.h"

#include "cli/environment.h"
#include "cli/message.h"
#include "os/clock.h"

#include <functional>
#include <string_view>

namespace sentry_prof::cli {

namespace {

constexpr const char* kLocal = "http://localhost:8969/stream";
constexpr uint64_t kAway_ns = 60'000'000'000;

}  // namespace

std::string spotlight_url(const std::string& variable) {
  if (is_yes(variable)) return kLocal;
  const bool is_url = variable.starts_with("http://") || variable.starts_with("https://");
  return is_url ? variable : "";
}

void SpotlightClient::show(const upload::HttpRequest& request) {
  upload::HttpRequest shown{url_, {}, request.body};
  for (const upload::HttpHeader& header : request.headers) {
    if (header.name != "X-Sentry-Auth") shown.headers.push_back(header);
  }
  const auto result = spotlight_->post(shown);
  if (result) return;
  away_until_ns_ = os::monotonic_ns() + kAway_ns;
  if (!std::exchange(is_told_, true)) {
    complain("Spotlight (" + url_ + ") does not answer: " + result.error().message);
  }
}

upload::HttpResult SpotlightClient::post(const upload::HttpRequest& request) {
  upload::HttpResult result = client_.post(request);
  const bool is_cancelled = !result && result.error().kind == upload::HttpFailureKind::Cancelled;
  const size_t hash = std::hash<std::string_view>{}(request.body);
  if (spotlight_ != nullptr && !is_cancelled && hash != shown_) {
    shown_ = hash;
    if (os::monotonic_ns() >= away_until_ns_) show(request);
  }
  return result;
}

}  // namespace sentry_prof::cli
