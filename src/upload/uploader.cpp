#include "upload/uploader.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::upload {

namespace {

// Before anything is cut: the half of a key would not be known as one.
HttpResult without_secrets(HttpResult result, const sentry::Dsn& dsn) {
  if (!result) {
    result.error().message = dsn.without_secrets(result.error().message);
    return result;
  }
  for (std::string* text : {&result->sentry_error, &result->location, &result->body}) {
    *text = dsn.without_secrets(*text);
  }
  return result;
}

}  // namespace

Uploader::Uploader(sentry::Dsn dsn, HttpClient& client, Waiter& waiter, UploaderOptions options,
                   RandomSource random)
    : dsn_(std::move(dsn)),
      client_(client),
      waiter_(waiter),
      options_(std::move(options)),
      random_(std::move(random)) {}

uint64_t Uploader::limited_for_ns(Categories categories) const {
  return limits_.remaining_ns(categories, waiter_.now_ns());
}

std::optional<Outcome> Uploader::held_back(Categories categories) const {
  const uint64_t limit_ns = limited_for_ns(categories);
  if (limit_ns <= options_.longest_limit_wait_ns) return std::nullopt;
  Outcome outcome;
  outcome.kind = OutcomeKind::RateLimited;
  outcome.retry_in_ns = limit_ns;
  return outcome;
}

HttpRequest Uploader::request_for(const Envelope& envelope) const {
  HttpRequest request;
  request.url = dsn_.envelope_url();
  request.body = envelope.body;
  request.headers = {{"Content-Type", "application/x-sentry-envelope"},
                     {"User-Agent", options_.client},
                     {"X-Sentry-Auth", dsn_.auth_header(options_.client)}};
  if (!envelope.content_encoding.empty()) {
    request.headers.push_back({"Content-Encoding", std::string(envelope.content_encoding)});
  }
  return request;
}

Outcome Uploader::send_once(const HttpRequest& request) {
  const HttpResult result = without_secrets(client_.post(request), dsn_);
  if (result) limits_.update(*result, waiter_.now_ns(), waiter_.unix_now_s());
  return outcome_of(result);
}

Outcome Uploader::send(const Envelope& envelope, Tries allowed) {
  const HttpRequest request = request_for(envelope);
  RetryPolicy retries = options_.retries;
  if (allowed == Tries::One) retries.max_retries = 0;
  RetrySchedule schedule(retries, random_);
  Outcome last;
  last.kind = OutcomeKind::RateLimited;  // until something else is known
  uint64_t limit_wait_left_ns = options_.longest_limit_wait_ns;
  uint64_t back_off_ns = 0;
  uint32_t tries = 0;
  for (;;) {
    const uint64_t limit_ns = limited_for_ns(envelope.categories);
    if (limit_ns > limit_wait_left_ns) {
      last.kind = OutcomeKind::RateLimited;
      last.retry_in_ns = limit_ns;
      return last;
    }
    limit_wait_left_ns -= limit_ns;
    const uint64_t wait_ns = std::max(limit_ns, back_off_ns);
    if (wait_ns != 0) {
      tell_wait_({limit_ns >= back_off_ns ? WaitReason::RateLimit : WaitReason::FailedTry, wait_ns,
                  tries + 1, retries.max_retries + 1});
    }
    if (wait_ns != 0 && !waiter_.wait(wait_ns)) {
      last.kind = OutcomeKind::Cancelled;
      last.detail.clear();  // of the try before
      return last;
    }

    last = send_once(request);
    last.tries = ++tries;
    if (last.kind == OutcomeKind::RateLimited) {
      last.retry_in_ns = limited_for_ns(envelope.categories);
    }
    if (!is_worth_retrying(last.kind)) return last;
    const auto next_wait_ns = schedule.next_wait_ns();
    if (!next_wait_ns) return last;
    tell_(last);
    back_off_ns = *next_wait_ns;
  }
}

}  // namespace sentry_prof::upload
