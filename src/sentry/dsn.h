// A DSN: where a project's data goes, and the key that lets it in.
// {scheme}://{key}[:{secret}]@{host}[:{port}]{/path}/{project id}
#pragma once

#include "sentry_prof/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

// The key leaves this class in auth_header() only. URLs are built from the checked parts, never
// from the text that was given.
class Dsn {
 public:
  // InvalidArgument with a message that names the faulty part and quotes nothing: where the parts
  // are confused, any of them may be the key. Strict: no white space or control character anywhere
  // (they could end a header), no query, no fragment, host names in ASCII, project ids of digits as
  // the server has them.
  static Result<Dsn> parse(std::string_view text);

  // "{scheme}://{host}[:{port}]{/path}/api/{project id}/envelope/": no key in it.
  std::string envelope_url() const;
  // The value of X-Sentry-Auth. `client` is "name/version".
  std::string auth_header(std::string_view client) const;
  // For people: "https://***@host/path/42".
  std::string masked() const;
  // What another program says, with "***" wherever it quotes the key or the secret, in whatever
  // case.
  std::string without_secrets(std::string_view text) const;

  bool is_encrypted() const { return is_encrypted_; }
  const std::string& host() const { return host_; }
  const std::string& project_id() const { return project_id_; }

 private:
  Dsn() = default;
  // What is wrong with the part, a constant, or nullptr.
  const char* take_userinfo(std::string_view userinfo);
  const char* take_host(std::string_view authority);
  const char* take_path(std::string_view path);
  std::string origin(std::string_view userinfo) const;

  bool is_encrypted_ = false;
  std::string key_, secret_;
  std::string host_;   // lower case; an IPv6 address with its brackets
  uint16_t port_ = 0;  // 0: the scheme's own
  std::string path_;   // empty, or "/a/b"
  std::string project_id_;
};

}  // namespace sentry_prof::sentry
