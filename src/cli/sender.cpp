#include "cli/sender.h"

#include "cli/dsn_source.h"
#include "cli/environment.h"
#include "cli/message.h"
#include "os/errors.h"
#include "os/memory_privacy.h"

#include <cerrno>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

constexpr const char* kClientName = "sentry-prof/" SENTRY_PROF_VERSION;

upload::UploaderOptions uploader_options(const SendingOptions& options) {
  upload::UploaderOptions result;
  result.retries.max_retries = options.max_retries;
  result.client = kClientName;
  if (!options.spool.empty() || options.max_retries == 0) result.longest_limit_wait_ns = 0;
  return result;
}

// Beside us, or not there: nobody waits for it, and no proxy leads there.
upload::CurlOptions spotlight_options(upload::CurlOptions options) {
  options.connect_time_out_s = 2;
  options.whole_time_out_s = 5;
  options.passes_proxy_for_local = true;
  return options;
}

}  // namespace

Result<std::unique_ptr<Sender>> Sender::create(const SendingOptions& options,
                                               const os::SignalSet& signals, int stop_fd) {
  os::make_memory_private();
  signals.let_next_one_kill();
  auto found = find_dsn(options.dsn, options.dsn_file, options.dsn_from);
  signals.hold_again();
  if (!found) return tl::unexpected(found.error());
  std::unique_ptr<Sender> sender(new Sender(stop_fd));
  upload::CurlOptions curl;
  curl.ca_file = options.ca_file;
  curl.is_cancelled = [&waiter = sender->waiter_] { return waiter.is_stopped(); };
  if (!options.ca_file.empty() && ::access(options.ca_file.c_str(), R_OK) != 0) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("--ca-file {}: {}", options.ca_file, os::describe_errno(errno)));
  }
  auto client = upload::CurlClient::create(curl);
  if (!client) return tl::unexpected(client.error());
  sender->client_ = std::move(*client);
  upload::HttpClient* used = sender->client_.get();
  if (options.is_verbose) {
    complain(fmt::format("the DSN is {}, from {}", found->dsn.masked(), found->source));
    sender->telling_client_ = std::make_unique<TellingClient>(*used, found->dsn);
    used = sender->telling_client_.get();
  }
  const std::string spotlight = spotlight_url(environment_variable("SENTRY_SPOTLIGHT"));
  if (!spotlight.empty()) {
    auto to_spotlight = upload::CurlClient::create(spotlight_options(std::move(curl)));
    if (!to_spotlight) return tl::unexpected(to_spotlight.error());
    sender->to_spotlight_ = std::move(*to_spotlight);
  }
  sender->client_and_spotlight_ =
      std::make_unique<SpotlightClient>(*used, sender->to_spotlight_.get(), spotlight);
  // Seeded from the kernel: clients that a server lost at one moment must not come back at one.
  std::random_device seed;
  const auto random = std::make_shared<std::mt19937_64>((uint64_t{seed()} << 32) | seed());
  sender->uploader_ = std::make_unique<upload::Uploader>(
      std::move(found->dsn), *sender->client_and_spotlight_, sender->waiter_,
      uploader_options(options), [random] { return (*random)(); });
  return sender;
}

Result<void> Sender::open_spool(const std::string& directory) {
  auto spool = upload::Spool::open(directory, upload::destination_of(uploader_->dsn()));
  if (!spool) return tl::unexpected(spool.error());
  spool_ = std::move(*spool);
  return {};
}

upload::Outcome Sender::send(const Sendable& sendable, upload::Tries tries) {
  return uploader_->send(
      {sendable.body, upload::content_encoding(sendable.encoding), sendable.categories}, tries);
}

}  // namespace sentry_prof::cli
