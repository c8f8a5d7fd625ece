#include "upload/outcome.h"

#include "base/time_units.h"
#include "base/utf8.h"

#include <algorithm>

#include <fmt/core.h>

namespace sentry_prof::upload {

namespace {

// Two lines of a terminal. Sentry's own words are shorter.
constexpr size_t kMaxDetail_bytes = 300;

std::string detail_from(std::string_view text) {
  // Cut first: a body may be long, and U+FFFD takes three bytes.
  return shortened_utf8(printable_utf8(text.substr(0, 2 * kMaxDetail_bytes)), kMaxDetail_bytes);
}

OutcomeKind kind_of_status(int status) {
  switch (status) {
    case 401:
    case 403:
      return OutcomeKind::Unauthorized;
    // Said of the address, not of the envelope: Relay answers an envelope with none of these, but a
    // wrong host or path in the DSN, or what stands in front of Relay, does.
    case 404:
    case 405:  // method not allowed
    case 407:  // proxy authentication required
    case 410:  // gone
    case 421:  // misdirected request
    case 451:  // unavailable for legal reasons
      return OutcomeKind::Misconfigured;
    // The server's trouble, although they have a client's numbers.
    case 408:  // request time-out
    case 425:  // too early
      return OutcomeKind::ServerFailed;
    case 413:
      return OutcomeKind::TooLarge;
    case 429:
      return OutcomeKind::RateLimited;
    default:
      break;
  }
  switch (status / 100) {
    case 2:
      return OutcomeKind::Accepted;
    case 3:
      return OutcomeKind::Misconfigured;
    case 4:
      return OutcomeKind::Refused;
    default:
      return OutcomeKind::ServerFailed;
  }
}

// Relay answers with JSON, others with that or nothing. A page is of something that stands before
// the server and has taken nothing: a proxy's, a hotel's log-in.
bool is_page(const HttpReply& reply) {
  const size_t begin = reply.body.find_first_not_of(" \t\r\n");
  return begin != reply.body.npos && reply.body[begin] == '<';
}

// Relay says what is wrong with an envelope by X-Sentry-Error, or {"detail": ...}. Other words are
// of what stands in front of it (a quota of the hosting, a proxy's limit of a line), or of a server
// that was spoken to without TLS.
bool is_in_sentrys_form(const HttpReply& reply) {
  const size_t begin = reply.body.find_first_not_of(" \t\r\n");
  return !reply.sentry_error.empty() || (begin != reply.body.npos && reply.body[begin] == '{' &&
                                         reply.body.find("\"detail\"") != reply.body.npos);
}

// Relay's 400 for what stands in the DSN, not in the envelope (relay-server/src/extractors/
// request_meta.rs, BadEventMeta).
bool is_of_dsn(const HttpReply& reply) {
  constexpr std::string_view kWords[] = {"bad sentry DSN public key", "bad project path parameter",
                                         "unsupported protocol version"};
  return std::ranges::any_of(kWords, [&](std::string_view words) {
    return reply.sentry_error.find(words) != std::string::npos ||
           reply.body.find(words) != std::string::npos;
  });
}

OutcomeKind kind_of_reply(const HttpReply& reply) {
  const OutcomeKind kind = kind_of_status(reply.status);
  if (kind == OutcomeKind::Refused && is_of_dsn(reply)) return OutcomeKind::Unauthorized;
  if (kind == OutcomeKind::Refused && !is_in_sentrys_form(reply)) return OutcomeKind::Misconfigured;
  const bool is_verdict = kind == OutcomeKind::Accepted || kind == OutcomeKind::Refused ||
                          kind == OutcomeKind::TooLarge;
  if (is_verdict && is_page(reply)) return OutcomeKind::Misconfigured;
  return kind;
}

OutcomeKind kind_of_failure(HttpFailureKind kind) {
  switch (kind) {
    case HttpFailureKind::Unresolved:
    case HttpFailureKind::Unreachable:
    case HttpFailureKind::TimedOut:
    case HttpFailureKind::ConnectionLost:
      return OutcomeKind::NetworkFailed;
    case HttpFailureKind::BadReply:
      return OutcomeKind::ServerFailed;
    case HttpFailureKind::TlsWrongHost:
    case HttpFailureKind::TlsExpired:
    case HttpFailureKind::TlsUntrusted:
    case HttpFailureKind::TlsOther:
      return OutcomeKind::TlsFailed;
    case HttpFailureKind::Misconfigured:
      return OutcomeKind::Misconfigured;
    case HttpFailureKind::Cancelled:
      return OutcomeKind::Cancelled;
  }
  return OutcomeKind::NetworkFailed;
}

bool was_connected(HttpFailureKind kind) {
  return kind == HttpFailureKind::TimedOut || kind == HttpFailureKind::ConnectionLost ||
         kind == HttpFailureKind::BadReply;
}

std::string_view said_by(const HttpReply& reply) {
  if (reply.status / 100 == 3) return reply.location;
  return reply.sentry_error.empty() ? std::string_view(reply.body) : reply.sentry_error;
}

std::string status_text(const Outcome& outcome) {
  if (outcome.http_status == 0) return outcome.detail;
  if (outcome.detail.empty()) return fmt::format("HTTP {}", outcome.http_status);
  return fmt::format("HTTP {}: {}", outcome.http_status, outcome.detail);
}

std::string duration_text(uint64_t ns) {
  const uint64_t seconds = ns / kNsPerSecond + (ns % kNsPerSecond != 0);
  if (seconds < 120) return fmt::format("{} s", seconds);
  const uint64_t minutes = (seconds + 59) / 60;
  if (minutes < 120) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

std::string after_tries(const Outcome& outcome) {
  return outcome.tries > 1 ? fmt::format(" after {} tries", outcome.tries) : std::string();
}

std::string misconfigured(const Outcome& outcome, const std::string& host) {
  if (outcome.http_status / 100 == 3) {
    return fmt::format(
        "{} redirects elsewhere ({}). Redirects are not followed, since the key would go along: "
        "put "
        "the right host and scheme into the DSN.",
        host, status_text(outcome));
  }
  if (outcome.http_status == 407) {
    return "the proxy wants a user name and a password: put them into HTTPS_PROXY, or HTTP_PROXY "
           "in "
           "lower case for http.";
  }
  if (outcome.http_status == 0) return outcome.detail;
  if (outcome.http_status == 413) {
    return fmt::format(
        "what stands in front of {} takes no bodies of this size ({}). Raise its limit (nginx: "
        "client_max_body_size), or record shorter chunks (--chunk-seconds).",
        host, status_text(outcome));
  }
  return fmt::format(
      "{} takes no envelopes at this address ({}). Compare scheme, host, path and project of the "
      "DSN with the project's settings, and what stands in front of the server.",
      host, status_text(outcome));
}

std::string rate_limited(const Outcome& outcome, const std::string& host) {
  const std::string when =
      outcome.retry_in_ns == 0 ? "later" : "in " + duration_text(outcome.retry_in_ns);
  return fmt::format("{} wants no more of this for now{}. Try again {}.", host,
                     outcome.http_status == 0 ? std::string() : " (" + status_text(outcome) + ")",
                     when);
}

std::string no_answer(const Outcome& outcome, const std::string& host) {
  if (!outcome.was_connected) {
    return fmt::format("{} could not be reached{}: {}", host, after_tries(outcome), outcome.detail);
  }
  return fmt::format("{} did not answer as it should{}: {} It may have taken it all the same.",
                     host, after_tries(outcome), outcome.detail);
}

}  // namespace

Outcome outcome_of(const HttpReply& reply) {
  Outcome outcome;
  outcome.kind = kind_of_reply(reply);
  outcome.http_status = reply.status;
  outcome.was_connected = true;
  if (outcome.kind != OutcomeKind::Accepted) outcome.detail = detail_from(said_by(reply));
  return outcome;
}

Outcome outcome_of(const HttpFailure& failure) {
  Outcome outcome;
  outcome.kind = kind_of_failure(failure.kind);
  outcome.was_connected = was_connected(failure.kind);
  outcome.detail = detail_from(failure.message);
  return outcome;
}

bool is_worth_retrying(OutcomeKind kind) {
  return kind == OutcomeKind::RateLimited || kind == OutcomeKind::ServerFailed ||
         kind == OutcomeKind::NetworkFailed;
}

bool is_final(OutcomeKind kind) {
  return kind == OutcomeKind::Accepted || kind == OutcomeKind::Refused ||
         kind == OutcomeKind::TooLarge;
}

bool may_be_of_one(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::RateLimited) return true;
  const bool is_wrong_key = outcome.kind == OutcomeKind::Unauthorized && outcome.http_status != 403;
  return outcome.was_connected && !is_wrong_key && outcome.kind != OutcomeKind::Cancelled;
}

int exit_code(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::Accepted:
      return 0;
    case OutcomeKind::Refused:
      return 1;
    case OutcomeKind::Misconfigured:
      return 2;
    case OutcomeKind::Unauthorized:
      return 3;
    case OutcomeKind::TooLarge:
      return 4;
    case OutcomeKind::RateLimited:
      return 5;
    case OutcomeKind::ServerFailed:
    case OutcomeKind::NetworkFailed:
    case OutcomeKind::TlsFailed:
    case OutcomeKind::Cancelled:  // a signal that cancelled decides itself how the program ends
      return 6;
  }
  return 6;
}

std::string sentence(const Outcome& outcome, const std::string& host) {
  switch (outcome.kind) {
    case OutcomeKind::Accepted:
      return fmt::format("accepted by {}.", host);
    case OutcomeKind::Refused:
      return fmt::format("{} refused it ({}).", host, status_text(outcome));
    case OutcomeKind::TooLarge:
      return fmt::format(
          "{} finds it too large ({}). Record shorter chunks (--chunk-seconds), or fewer samples "
          "(--frequency).",
          host, status_text(outcome));
    case OutcomeKind::Unauthorized:
      return fmt::format(
          "{} does not accept the DSN ({}). Compare it with the project's settings, \"Client Keys "
          "(DSN)\".",
          host, status_text(outcome));
    case OutcomeKind::RateLimited:
      return rate_limited(outcome, host);
    case OutcomeKind::ServerFailed:
      return fmt::format("{} failed{} ({}). Try again later.", host, after_tries(outcome),
                         status_text(outcome));
    case OutcomeKind::NetworkFailed:
      return no_answer(outcome, host);
    case OutcomeKind::TlsFailed:
      return fmt::format("no secure connection to {}: {}", host, outcome.detail);
    case OutcomeKind::Misconfigured:
      return misconfigured(outcome, host);
    case OutcomeKind::Cancelled:
      return "not sent: it was interrupted." +
             (outcome.detail.empty() ? std::string() : fmt::format(" {} {}", host, outcome.detail));
  }
  return {};
}

}  // namespace sentry_prof::upload
