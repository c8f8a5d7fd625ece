// One envelope at a time to a server: through its rate limits, with tries and waits.
// No threads, no clock, no network of its own.
#pragma once

#include "sentry/dsn.h"
#include "upload/http.h"
#include "upload/outcome.h"
#include "upload/rate_limits.h"
#include "upload/retry_schedule.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sentry_prof::upload {

// Time, as the uploader sees it.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual uint64_t now_ns() const = 0;  // monotonic
  virtual int64_t unix_now_s() const = 0;
  // False as soon as the user wants to end; then it returns early.
  [[nodiscard]] virtual bool wait(uint64_t duration_ns) = 0;
};

// Ready to be sent: what stays the same over all tries, so that a server that took it twice sees
// the same chunk_id twice.
struct Envelope {
  std::string_view body;              // the caller's, for the time of the call
  std::string_view content_encoding;  // "gzip", "zstd"; empty: as it is
  Categories categories;              // of its items
};

struct UploaderOptions {
  RetryPolicy retries;
  // How long one envelope may wait for rate limits, all together. 0 with a spool: it keeps better
  // there.
  uint64_t longest_limit_wait_ns = 300'000'000'000;
  std::string client;  // "name/version", as User-Agent and sentry_client
};

enum class Tries : uint8_t {
  All,  // as the options say
  One,
};

enum class WaitReason : uint8_t {
  RateLimit,
  FailedTry,  // which another one follows
};

struct Wait {
  WaitReason reason = WaitReason::FailedTry;
  uint64_t duration_ns = 0;
  uint32_t next_try = 1;  // of `max_tries`, from 1
  uint32_t max_tries = 1;
};

class Uploader {
 public:
  // The client and the waiter must outlive the uploader.
  Uploader(sentry::Dsn dsn, HttpClient& client, Waiter& waiter, UploaderOptions options,
           RandomSource random);

  // From now on `tell` is called, in send(), with each try that failed and that another one
  // follows: a server that is away for an hour is known at once, not after the last try.
  void on_failed_try(std::function<void(const Outcome&)> tell) { tell_ = std::move(tell); }

  // The same with each wait, before it.
  void on_wait(std::function<void(const Wait&)> tell) { tell_wait_ = std::move(tell); }

  // Every answer of the server's counts against --max-retries, 429 as well. Limits are kept from
  // one envelope to the next.
  Outcome send(const Envelope& envelope, Tries tries = Tries::All);

  // What send() would say without a request, because a limit of these categories outlasts its
  // patience; nothing if it would send.
  std::optional<Outcome> held_back(Categories categories) const;
  // How long data of these categories has to wait now; 0: not at all.
  uint64_t limited_for_ns(Categories categories) const;
  const sentry::Dsn& dsn() const { return dsn_; }

 private:
  HttpRequest request_for(const Envelope& envelope) const;
  Outcome send_once(const HttpRequest& request);

  sentry::Dsn dsn_;
  HttpClient& client_;
  Waiter& waiter_;
  UploaderOptions options_;
  RandomSource random_;
  RateLimits limits_;
  std::function<void(const Outcome&)> tell_ = [](const Outcome&) {};
  std::function<void(const Wait&)> tell_wait_ = [](const Wait&) {};
};

}  // namespace sentry_prof::upload
