#include "sentry/dsn.h"

#include "base/ascii.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace sentry_prof::sentry {

namespace {

// Real ones have about 100 characters.
constexpr size_t kMaxDsn_bytes = 2048;
// RFC 1035, section 2.3.4.
constexpr size_t kMaxHost_bytes = 253;
// The server's ids are 64-bit numbers.
constexpr size_t kMaxProjectId_bytes = 20;
// Shorter texts would be masked in the middle of words. Real keys have 32 characters.
constexpr size_t kMinSecretToMask_bytes = 4;

constexpr std::string_view kMask = "***";

[[nodiscard]] tl::unexpected<Error> refuse(const char* what) {
  return fail(ErrorCode::InvalidArgument,
              std::string("the DSN is not valid: ") + what +
                  ". Copy it from the project's settings, \"Client Keys (DSN)\": "
                  "https://KEY@HOST/PROJECT_ID");
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// RFC 3986's "unreserved": what stands for itself in a URL, and ends neither a header nor one of
// its fields.
bool is_unreserved(char c) {
  return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

template <typename Predicate>
bool all_of(std::string_view text, Predicate is_allowed) {
  return std::all_of(text.begin(), text.end(), is_allowed);
}

bool is_key(std::string_view text) { return !text.empty() && all_of(text, is_unreserved); }

bool is_host_name(std::string_view host) {
  return !host.empty() && host.size() <= kMaxHost_bytes && host.front() != '.' &&
         host.front() != '-' && host.find("..") == host.npos && all_of(host, [](char c) {
           return is_alphanumeric(c) || c == '-' || c == '.' || c == '_';
         });
}

// "[...]": the resolver judges the rest. No zone ids: they name this machine's interfaces.
bool is_ipv6_literal(std::string_view host) {
  if (host.size() < 4 || host.front() != '[' || host.back() != ']') return false;
  const std::string_view address = host.substr(1, host.size() - 2);
  return address.find(':') != address.npos && address.find("..") == address.npos &&
         all_of(address, [](char c) { return is_hex_digit(c) || c == ':' || c == '.'; });
}

// Empty, or "/a/b"; a segment "." or ".." would be resolved away by whoever sends it.
bool is_path(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // '/'
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment.empty() || segment == "." || segment == ".." || !all_of(segment, is_unreserved)) {
      return false;
    }
    path.remove_prefix(segment.size());
  }
  return true;
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || after != end || port == 0) return std::nullopt;
  return port;
}

// "host", "host:port", "[::1]:port" -> host and what follows it.
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) {
    const size_t bracket = authority.find(']');
    return authority.substr(0, bracket == authority.npos ? bracket : bracket + 1);
  }
  return authority.substr(0, authority.find(':'));
}

std::string masked_text(std::string_view text, std::string_view secret) {
  std::string result;
  if (secret.size() < kMinSecretToMask_bytes) return result.append(text);
  const std::string lower_text = to_lower_ascii(text), wanted = to_lower_ascii(secret);
  size_t begin = 0;
  for (size_t found; (found = lower_text.find(wanted, begin)) != lower_text.npos;) {
    result.append(text, begin, found - begin).append(kMask);
    begin = found + wanted.size();
  }
  return result.append(text, begin);
}

}  // namespace

Result<Dsn> Dsn::parse(std::string_view text) {
  if (text.empty()) return refuse("it is empty");
  if (text.size() > kMaxDsn_bytes) return refuse("it is longer than 2048 characters");
  if (!all_of(text, [](char c) { return c > ' ' && c < '\x7f'; })) {
    return refuse(
        "it has a space, a control character or one outside of ASCII in it "
        "(host names of other scripts are written as xn--...)");
  }
  Dsn dsn;
  const size_t scheme_end = text.find("://");
  const std::string scheme =
      to_lower_ascii(text.substr(0, scheme_end == text.npos ? 0 : scheme_end));
  if (scheme != "https" && scheme != "http")
    return refuse("it does not begin with https:// or http://");
  dsn.is_encrypted_ = scheme == "https";
  text.remove_prefix(scheme_end + 3);

  const size_t slash = text.find('/');
  const std::string_view authority = text.substr(0, slash);
  const size_t at = authority.find('@');
  if (at == authority.npos) return refuse("there is no key before the host (KEY@)");
  const char* fault = dsn.take_userinfo(authority.substr(0, at));
  if (fault == nullptr) fault = dsn.take_host(authority.substr(at + 1));
  if (fault == nullptr) fault = dsn.take_path(slash == text.npos ? "" : text.substr(slash));
  if (fault != nullptr) return refuse(fault);
  return dsn;
}

const char* Dsn::take_userinfo(std::string_view userinfo) {
  const size_t colon = userinfo.find(':');
  key_ = userinfo.substr(0, colon);
  if (!is_key(key_)) return "the key before the @ is empty or has an odd character";
  if (colon == userinfo.npos) return nullptr;
  secret_ = userinfo.substr(colon + 1);
  return is_key(secret_) ? nullptr : "the secret before the @ is empty or has an odd character";
}

const char* Dsn::take_host(std::string_view authority) {
  const std::string_view host = host_of(authority);
  if (!is_host_name(host) && !is_ipv6_literal(host)) return "what follows the @ is no host";
  host_ = to_lower_ascii(host);
  authority.remove_prefix(host.size());
  if (authority.empty()) return nullptr;
  const auto port = parse_port(authority.substr(1));
  if (authority.front() != ':' || !port) return "the port is no number from 1 to 65535";
  port_ = *port;
  return nullptr;
}

const char* Dsn::take_path(std::string_view path) {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  const std::string_view id = slash == path.npos ? path : path.substr(slash + 1);
  if (id.empty() || id.size() > kMaxProjectId_bytes || !all_of(id, is_digit)) {
    return "it does not end with a project id, a number";
  }
  project_id_ = id;
  path_ = path.substr(0, slash);
  return is_path(path_) ? nullptr : "the path before the project id has an odd part";
}

std::string Dsn::origin(std::string_view userinfo) const {
  std::string result = is_encrypted_ ? "https://" : "http://";
  result += userinfo;
  result += host_;
  if (port_ != 0) result.append(":").append(std::to_string(port_));
  return result + path_;
}

std::string Dsn::envelope_url() const { return origin("") + "/api/" + project_id_ + "/envelope/"; }

std::string Dsn::masked() const { return origin("***@") + "/" + project_id_; }

std::string Dsn::auth_header(std::string_view client) const {
  std::string result = "Sentry sentry_version=7, sentry_key=" + key_ + ", sentry_client=";
  result += client;
  if (!secret_.empty()) result += ", sentry_secret=" + secret_;
  return result;
}

std::string Dsn::without_secrets(std::string_view text) const {
  // The longer one first: one may be a part of the other.
  const bool key_is_longer = key_.size() >= secret_.size();
  return masked_text(masked_text(text, key_is_longer ? key_ : secret_),
                     key_is_longer ? secret_ : key_);
}

}  // namespace sentry_prof::sentry
