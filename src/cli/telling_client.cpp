#include "cli/telling_client.h"

#include "base/utf8.h"
#include "cli/message.h"
#include "os/clock.h"

#include <utility>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

// Some lines of a terminal: limits of all categories fit, a server's page in HTML does not.
constexpr size_t kMaxShown_bytes = 500;

// Empty if the header is not there.
std::string shown(const char* name, const std::string& value, const sentry::Dsn& dsn) {
  if (value.empty()) return "";
  // Without the key first: half of it would not be known as one.
  const std::string text = printable_utf8(dsn.without_secrets(value));
  return fmt::format("; {}: {}", name, shortened_utf8(text, kMaxShown_bytes));
}

std::string reply_text(const upload::HttpReply& reply, const sentry::Dsn& dsn) {
  return shown("X-Sentry-Rate-Limits", reply.rate_limits, dsn) +
         shown("Retry-After", reply.retry_after, dsn) +
         shown("X-Sentry-Error", reply.sentry_error, dsn) + shown("Location", reply.location, dsn) +
         shown("body", reply.body, dsn);
}

std::string packing_of(const upload::HttpRequest& request) {
  for (const upload::HttpHeader& header : request.headers) {
    if (header.name == "Content-Encoding") return ", " + header.value;
  }
  return "";
}

}  // namespace

std::string request_text(const upload::HttpRequest& request, const upload::HttpResult& result,
                         uint64_t duration_ns, const sentry::Dsn& dsn) {
  const std::string what =
      fmt::format("POST {} ({} bytes{})", request.url, request.body.size(), packing_of(request));
  const uint64_t duration_ms = duration_ns / 1'000'000;
  if (!result) {
    return fmt::format("{}: no answer after {} ms: {}", what, duration_ms,
                       dsn.without_secrets(result.error().message));
  }
  return fmt::format("{}: HTTP {} in {} ms{}", what, result->status, duration_ms,
                     reply_text(*result, dsn));
}

upload::HttpResult TellingClient::post(const upload::HttpRequest& request) {
  const uint64_t begin_ns = os::monotonic_ns();
  upload::HttpResult result = client_.post(request);
  complain(request_text(request, result, os::monotonic_ns() - begin_ns, dsn_));
  return result;
}

}  // namespace sentry_prof::cli
