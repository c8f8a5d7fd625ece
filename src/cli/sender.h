// Everything that sending takes, put together from the options: DSN, client, uploader, spool.
#pragma once

#include "cli/sendable.h"
#include "cli/upload_options.h"
#include "upload/clock_waiter.h"
#include "upload/curl_client.h"
#include "upload/outcome.h"
#include "upload/spool.h"
#include "upload/uploader.h"

#include <memory>
#include <optional>
#include <string>

namespace sentry_prof::cli {

class Sender {
 public:
  // Before other threads run. `stop_fd` as ClockWaiter has it. InvalidArgument, NotFound: the
  // DSN's; others the spool's or libcurl's. From here on the process's memory is private.
  static Result<std::unique_ptr<Sender>> create(const SendingOptions& options, int stop_fd);

  // To Spotlight and to the DSN's server; the spool is the caller's.
  upload::Outcome send(const Sendable& sendable);
  // Also to the local Spotlight, if SENTRY_SPOTLIGHT asks for it; its trouble is nobody's.
  void show_to_spotlight(const Sendable& sendable);

  upload::Uploader& uploader() { return *uploader_; }
  const upload::ClockWaiter& waiter() const { return waiter_; }
  std::optional<upload::Spool>& spool() { return spool_; }
  std::string host() const { return uploader_->dsn().host(); }

 private:
  explicit Sender(int stop_fd) : waiter_(stop_fd) {}

  upload::ClockWaiter waiter_;
  std::unique_ptr<upload::CurlClient> client_;
  std::unique_ptr<upload::Uploader> uploader_;
  std::optional<upload::Spool> spool_;
  std::string spotlight_url_;  // empty: none
};

// "1", "true" and the like mean the usual local address; a URL is taken as it is; empty for none.
std::string spotlight_url(const std::string& variable);

}  // namespace sentry_prof::cli
