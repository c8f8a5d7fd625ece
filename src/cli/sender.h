// Everything that sending takes, put together from the options: DSN, client, uploader, spool.
#pragma once

#include "cli/sendable.h"
#include "cli/spotlight_client.h"
#include "cli/telling_client.h"
#include "cli/upload_options.h"
#include "os/signals.h"
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
  // Does not open the spool, but waits for no rate limit where there is one: it keeps better there.
  // Before other threads run. `signals`: those that the calling thread holds back, which may end
  // the process while the DSN is waited for (a pipe). `stop_fd` as ClockWaiter has it.
  // InvalidArgument, NotFound: the DSN's; others libcurl's. From here on the process's memory is
  // private.
  static Result<std::unique_ptr<Sender>> create(const SendingOptions& options,
                                                const os::SignalSet& signals, int stop_fd);

  // For who sends from the spool himself. Errors as those of Spool::open.
  Result<void> open_spool(const std::string& directory);

  // Past the spool, if there is one.
  upload::Outcome send(const Sendable& sendable, upload::Tries tries);

  upload::Uploader& uploader() { return *uploader_; }
  const upload::ClockWaiter& waiter() const { return waiter_; }
  std::optional<upload::Spool>& spool() { return spool_; }
  std::string host() const { return uploader_->dsn().host(); }

 private:
  explicit Sender(int stop_fd) : waiter_(stop_fd) {}

  upload::ClockWaiter waiter_;
  std::unique_ptr<upload::CurlClient> client_;
  std::unique_ptr<TellingClient> telling_client_;  // --verbose
  std::unique_ptr<upload::CurlClient> to_spotlight_;
  std::unique_ptr<SpotlightClient> client_and_spotlight_;  // SENTRY_SPOTLIGHT
  std::unique_ptr<upload::Uploader> uploader_;
  std::optional<upload::Spool> spool_;
};

}  // namespace sentry_prof::cli
