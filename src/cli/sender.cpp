#include "cli/sender.h"

#include "cli/dsn_source.h"
#include "os/memory_privacy.h"

#include <cstdlib>
#include <random>
#include <utility>

namespace sentry_prof::cli {

namespace {

constexpr const char* kClientName = "sentry-prof/" SENTRY_PROF_VERSION;
constexpr const char* kLocalSpotlight = "http://localhost:8969/stream";

upload::UploaderOptions uploader_options(const SendingOptions& options) {
  upload::UploaderOptions result;
  result.retries.max_retries = options.max_retries;
  result.client = kClientName;
  if (!options.spool.empty() || options.max_retries == 0) result.longest_limit_wait_ns = 0;
  return result;
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string spotlight_url(const std::string& variable) {
  if (variable == "1" || variable == "true" || variable == "yes" || variable == "on") {
    return kLocalSpotlight;
  }
  return variable.starts_with("http://") || variable.starts_with("https://") ? variable : "";
}

Result<std::unique_ptr<Sender>> Sender::create(const SendingOptions& options, int stop_fd) {
  os::make_memory_private();
  auto found = find_dsn(options.dsn, options.dsn_file);
  if (!found) return tl::unexpected(found.error());
  std::unique_ptr<Sender> sender(new Sender(stop_fd));
  upload::CurlOptions curl;
  curl.ca_file = options.ca_file;
  curl.is_cancelled = [&waiter = sender->waiter_] { return waiter.is_stopped(); };
  auto client = upload::CurlClient::create(std::move(curl));
  if (!client) return tl::unexpected(client.error());
  sender->client_ = std::move(*client);
  if (!options.spool.empty()) {
    auto spool = upload::Spool::open(options.spool);
    if (!spool) return tl::unexpected(spool.error());
    sender->spool_ = std::move(*spool);
  }
  // Seeded from the kernel: clients that a server lost at one moment must not come back at one.
  std::random_device seed;
  const auto random = std::make_shared<std::mt19937_64>((uint64_t{seed()} << 32) | seed());
  sender->uploader_ = std::make_unique<upload::Uploader>(std::move(found->dsn), *sender->client_,
                                                         sender->waiter_, uploader_options(options),
                                                         [random] { return (*random)(); });
  sender->spotlight_url_ = spotlight_url(environment_variable("SENTRY_SPOTLIGHT"));
  return sender;
}

upload::Outcome Sender::send(const Sendable& sendable) {
  show_to_spotlight(sendable);
  return uploader_->send(
      {sendable.body, upload::content_encoding(sendable.encoding), sendable.categories});
}

void Sender::show_to_spotlight(const Sendable& sendable) {
  if (spotlight_url_.empty()) return;
  upload::HttpRequest request;
  request.url = spotlight_url_;
  request.body = sendable.body;
  request.headers = {{"Content-Type", "application/x-sentry-envelope"},
                     {"User-Agent", kClientName}};
  const std::string_view encoding = upload::content_encoding(sendable.encoding);
  if (!encoding.empty()) request.headers.push_back({"Content-Encoding", std::string(encoding)});
  (void)client_->post(request);
}

}  // namespace sentry_prof::cli
