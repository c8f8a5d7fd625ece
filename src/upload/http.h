// The boundary to the network: one request, one answer or the reason why there is none.
// Implementations: CurlClient (Linux half), and a scripted one in the tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace sentry_prof::upload {

struct HttpHeader {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string url;
  std::vector<HttpHeader> headers;  // Content-Encoding among them if `body` is compressed
  std::string_view body;            // the caller's, for the time of the call
};

// Sentry's answers have some hundred bytes; the rest of a longer one is not read.
inline constexpr size_t kMaxReplyBody_bytes = 64 * 1024;
// Of each header that is looked at. A server names a handful of limits of 50 bytes each.
inline constexpr size_t kMaxHeaderValue_bytes = 8 * 1024;

// What a server said. All texts are hostile bytes. A header that was not sent is empty; one that
// was sent several times is joined by ", ".
struct HttpReply {
  int status = 0;
  std::string rate_limits;   // X-Sentry-Rate-Limits
  std::string retry_after;   // Retry-After
  std::string date;          // Date
  std::string sentry_error;  // X-Sentry-Error
  std::string location;      // Location; redirects are never followed
  std::string body;          // as sent, at most kMaxReplyBody_bytes
};

enum class HttpFailureKind {
  Unresolved,      // no address for the host's or the proxy's name
  Unreachable,     // refused, no route, no connection in time
  TimedOut,        // connected, then too slow or silent
  ConnectionLost,  // ended before the answer was there
  BadReply,        // an answer that is no HTTP, or without bounds
  TlsWrongHost,    // the certificate is for another name
  TlsExpired,      // or not yet valid
  TlsUntrusted,    // self-signed, or of an authority that is not known here
  TlsOther,
  Misconfigured,  // proxy, file of authorities, protocol: the user's to mend
  Cancelled,      // by the user
};

// `message`: one sentence for people, without the request's headers. Of Cancelled: what the server
// had done by then, to be read behind its name.
struct HttpFailure {
  HttpFailureKind kind;
  std::string message;
};

using HttpResult = tl::expected<HttpReply, HttpFailure>;

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Blocks until there is a result. A failure other than Unresolved, Unreachable and Tls... leaves
  // open whether the server has got the request.
  virtual HttpResult post(const HttpRequest& request) = 0;
};

}  // namespace sentry_prof::upload
