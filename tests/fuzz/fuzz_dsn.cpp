// DSNs: whatever is accepted must be safe in a URL and in a header, and hide its key.
#include "fuzz/require.h"
#include "sentry/dsn.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using sentry_prof::fuzz::require;
using sentry_prof::sentry::Dsn;

namespace {

bool is_one_word(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c >= '\x7f') return false;
  }
  return true;
}

bool is_one_line(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c >= '\x7f') return false;
  }
  return true;
}

// The parts once more, by a way of their own: a text that was accepted has exactly one '@' before
// its path.
std::string_view userinfo_of(std::string_view text) {
  text.remove_prefix(text.find("://") + 3);
  return text.substr(0, text.find('@'));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto dsn = Dsn::parse(text);
  if (!dsn) {
    require(is_one_line(dsn.error().message));
    return 0;
  }
  const std::string url = dsn->envelope_url();
  require(is_one_word(url) && url.find('@') == url.npos && url.find("/../") == url.npos);
  require(url.ends_with("/api/" + dsn->project_id() + "/envelope/"));
  require(url.find("://" + dsn->host()) != url.npos);
  require(is_one_line(dsn->auth_header("c/1")));

  const std::string_view userinfo = userinfo_of(text);
  const std::string key(userinfo.substr(0, userinfo.find(':')));
  require(!key.empty());
  require(dsn->masked().find("://***@") != std::string::npos);
  // Masking finds the key in texts of any kind; short keys are left alone on purpose.
  if (key.size() >= 4 && key.find('*') == key.npos) {
    require(dsn->without_secrets("x" + key + "y" + key).find(key) == std::string::npos);
  }
  // What is shown can be parsed again with another key, and leads to the same place.
  const std::string masked = dsn->masked();
  const size_t mask = masked.find("***");
  const auto again = Dsn::parse(masked.substr(0, mask) + "k" + masked.substr(mask + 3));
  require(again && again->envelope_url() == url);
  return 0;
}
