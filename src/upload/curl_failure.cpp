#include "upload/curl_failure.h"

#include <fmt/core.h>

namespace sentry_prof::upload {

namespace {

// OpenSSL's x509_vfy.h; the numbers are part of its interface. libcurl on GnuTLS has no such
// numbers: there only its text tells.
enum VerifyResult : long {
  kNotYetValid = 9,
  kHasExpired = 10,
  kSelfSigned = 18,
  kSelfSignedInChain = 19,
  kUnknownIssuer = 20,
  kCannotVerifyLeaf = 21,
};

constexpr std::string_view kOwnAuthority =
    "If it is your own, name its authority's file with --ca-file or SSL_CERT_FILE.";

bool says(const CurlFacts& facts, std::string_view words) {
  return facts.text.find(words) != facts.text.npos;
}

HttpFailure untrusted(const CurlFacts& facts) {
  switch (facts.verify_result) {
    case kSelfSigned:
      return {HttpFailureKind::TlsUntrusted,
              fmt::format("its certificate is self-signed. {}", kOwnAuthority)};
    case kSelfSignedInChain:
    case kUnknownIssuer:
    case kCannotVerifyLeaf:
      return {HttpFailureKind::TlsUntrusted,
              fmt::format("its certificate comes from an authority that is not known here. {}",
                          kOwnAuthority)};
    default:
      return {HttpFailureKind::TlsUntrusted,
              fmt::format("its certificate is not trusted ({}).", facts.text)};
  }
}

HttpFailure certificate_failure(const CurlFacts& facts) {
  if (facts.verify_result == kHasExpired || says(facts, "has expired")) {
    return {HttpFailureKind::TlsExpired,
            "its certificate has expired. Renew it, or set this machine's clock."};
  }
  if (facts.verify_result == kNotYetValid || says(facts, "not yet valid")) {
    return {HttpFailureKind::TlsExpired,
            "its certificate is not valid yet. Look at this machine's clock."};
  }
  // libcurl compares the name itself, after OpenSSL found the chain good, and has only words for
  // it: "certificate subject name 'x' does not match ...", "no alternative certificate subject name
  // matches ...".
  if (says(facts, "subject name")) {
    return {HttpFailureKind::TlsWrongHost,
            "its certificate is for another host name. Compare the DSN with the name the server is "
            "known by."};
  }
  return untrusted(facts);
}

HttpFailure unusable(const CurlFacts& facts) {
  return {HttpFailureKind::Misconfigured,
          fmt::format("this URL or proxy cannot be used ({}).", facts.text)};
}

std::string of_variable(const CurlFacts& facts) {
  return facts.proxy_variable.empty() ? std::string() : " of " + facts.proxy_variable;
}

std::string through_proxy(const CurlFacts& facts) {
  return facts.proxy_variable.empty() ? std::string() : " through the proxy" + of_variable(facts);
}

// Its value may hold a password, and libcurl would quote it.
HttpFailure unusable_proxy(const CurlFacts& facts) {
  const std::string name =
      facts.proxy_variable.empty() ? "the variable of the proxy" : facts.proxy_variable;
  return {HttpFailureKind::Misconfigured,
          fmt::format("{} holds no URL of a proxy that can be used. Write http://HOST:PORT, or "
                      "unset it.",
                      name)};
}

HttpFailure unsound(const CurlFacts& facts) {
  return {HttpFailureKind::BadReply, fmt::format("what it answers is not sound ({}).", facts.text)};
}

// libcurl stops at 100 KiB a header and 300 KiB of them. 7.88 calls the one "out of memory" and the
// other a receive error, 8.6 and newer have CURLE_TOO_LARGE (100), which older headers do not know.
bool is_answer_without_bounds(const CurlFacts& facts) {
  constexpr int kTooLarge = 100;
  return static_cast<int>(facts.code) == kTooLarge || says(facts, "Too large response headers") ||
         (facts.code == CURLE_OUT_OF_MEMORY && facts.was_connected);
}

HttpFailure time_out(const CurlFacts& facts) {
  if (!facts.was_connected) {
    return {HttpFailureKind::Unreachable,
            fmt::format("no connection{} within {} s (of https with its handshake).",
                        through_proxy(facts), facts.connect_time_out_s)};
  }
  return {HttpFailureKind::TimedOut, fmt::format("too slow or silent ({}).", facts.text)};
}

HttpFailure proxy_failure(const CurlFacts& facts) {
  if (facts.proxy_status == 407) {
    return {HttpFailureKind::Misconfigured,
            fmt::format("the proxy wants a user name and a password (HTTP 407): put them into {}.",
                        facts.proxy_variable.empty() ? "HTTPS_PROXY" : facts.proxy_variable)};
  }
  return {HttpFailureKind::Unreachable, fmt::format("the proxy{} did not connect to it (HTTP {}).",
                                                    of_variable(facts), facts.proxy_status)};
}

HttpFailure unresolved_proxy(const CurlFacts& facts) {
  return {
      HttpFailureKind::Unresolved,
      fmt::format("the proxy's name has no address ({}). Look at {}.", facts.text,
                  facts.proxy_variable.empty() ? "HTTPS_PROXY, ALL_PROXY and, for http, http_proxy"
                                               : facts.proxy_variable)};
}

HttpFailure bad_ca_file(const CurlFacts& facts) {
  const std::string name = facts.ca_file.empty() ? "of this system" : facts.ca_file;
  return {
      HttpFailureKind::Misconfigured,
      fmt::format("the file of certificate authorities {} cannot be used ({}).", name, facts.text)};
}

}  // namespace

HttpFailure failure_of(const CurlFacts& facts) {
  if (is_answer_without_bounds(facts)) {
    return {HttpFailureKind::BadReply,
            fmt::format("what it answers has no bounds ({}).", facts.text)};
  }
  if (facts.proxy_status >= 300) return proxy_failure(facts);
  // "syntax in", "scheme for", "'...', libcurl is built without": each with another code.
  if (facts.text.starts_with("Unsupported proxy ")) return unusable_proxy(facts);
  switch (facts.code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return {HttpFailureKind::Unresolved, "its name has no address (DNS)."};
    case CURLE_COULDNT_RESOLVE_PROXY:
      return unresolved_proxy(facts);
    case CURLE_COULDNT_CONNECT:
      return {HttpFailureKind::Unreachable,
              fmt::format("no connection{} ({}).", through_proxy(facts), facts.text)};
    case CURLE_OPERATION_TIMEDOUT:
      return time_out(facts);
    case CURLE_PEER_FAILED_VERIFICATION:
      return certificate_failure(facts);
    case CURLE_SSL_CACERT_BADFILE:
      return bad_ca_file(facts);
    case CURLE_SSL_CONNECT_ERROR:
      return {HttpFailureKind::TlsOther,
              fmt::format("TLS failed ({}). Check that the DSN's port speaks https.", facts.text)};
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return {HttpFailureKind::TlsOther, fmt::format("TLS failed ({}).", facts.text)};
    case CURLE_UNSUPPORTED_PROTOCOL:
      // Of an answer: that it is no HTTP/1.
      return facts.was_connected ? unsound(facts) : unusable(facts);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNKNOWN_OPTION:
    case CURLE_NOT_BUILT_IN:
    case CURLE_PROXY:
      return unusable(facts);
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return unsound(facts);
    default:
      return {HttpFailureKind::ConnectionLost,
              fmt::format("the connection{} was lost before an answer came ({}).",
                          through_proxy(facts), facts.text)};
  }
}

}  // namespace sentry_prof::upload
