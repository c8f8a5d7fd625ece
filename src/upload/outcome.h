// What became of an envelope: a closed set, each with its exit code and its sentence.
#pragma once

#include "upload/http.h"

#include <cstdint>
#include <string>

namespace sentry_prof::upload {

enum class OutcomeKind : uint8_t {
  Accepted,       // 2xx without a page in HTML
  Refused,        // 400 or another 4xx in Sentry's form: this envelope will never be taken
  TooLarge,       // 413
  Unauthorized,   // 401, 403, 400 for the DSN's sake: wrong key, unknown or disabled project
  RateLimited,    // 429, or not sent because of a limit that holds
  ServerFailed,   // 5xx, 408, 425, and answers that mean nothing
  NetworkFailed,  // no answer
  TlsFailed,      // the server's certificate or its TLS was refused
  Misconfigured,  // a redirect, 404 and the like, a 4xx or a page that is not Sentry's; a CA file
  Cancelled,      // by the user, before there was an answer
};

struct Outcome {
  OutcomeKind kind = OutcomeKind::NetworkFailed;
  int http_status = 0;         // of the last answer; 0 without one
  bool was_connected = false;  // to the server, at the last try
  std::string detail;          // what the server or libcurl said: printable, short, without the key
  uint32_t tries = 0;          // requests sent
  uint64_t retry_in_ns = 0;    // RateLimited: when the limit ends
};

// Kind, status and detail. `detail` is made printable here (RFC 3629; escape sequences of a
// terminal become U+FFFD) and cut off; what may quote the key must have been through
// Dsn::without_secrets before.
Outcome outcome_of(const HttpReply& reply);
Outcome outcome_of(const HttpFailure& failure);
inline Outcome outcome_of(const HttpResult& result) {
  return result ? outcome_of(*result) : outcome_of(result.error());
}

// Another try of the same bytes may end otherwise.
bool is_worth_retrying(OutcomeKind kind);
// The server has judged the envelope itself: it need not be kept to be sent again. Everything else,
// also a wrong key or CA file, is mended elsewhere, and the envelope is still good then.
bool is_final(OutcomeKind kind);
// Another envelope may fare better now: a limit may be of its category only, a firewall that
// dislikes the bytes of one says 403. That nobody is there, a wrong key (401, 400), a certificate
// and the user's ^C hold for all.
bool may_be_of_one(const Outcome& outcome);

// As the man page lists them.
int exit_code(OutcomeKind kind);

// One sentence or two for people: what happened, and the next step. `host` is where it was sent to.
std::string sentence(const Outcome& outcome, const std::string& host);

}  // namespace sentry_prof::upload
