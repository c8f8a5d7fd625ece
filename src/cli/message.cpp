#include "cli/message.h"

#include "base/utf8.h"

#include <cstdio>
#include <string>

namespace sentry_prof::cli {

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string without_userinfo(std::string_view text) {
  constexpr std::string_view kScheme = "://";
  std::string result;
  for (;;) {
    const size_t begin = text.find(kScheme);
    if (begin == text.npos) return result.append(text);
    result.append(text.substr(0, begin + kScheme.size()));
    text.remove_prefix(begin + kScheme.size());
    const size_t end = text.find_first_of("/ '\n");
    const size_t at = text.substr(0, end).rfind('@');
    if (at == text.npos) continue;
    result.append("***");
    text.remove_prefix(at);
  }
}

void complain(std::string_view message) {
  print("sentry-prof: " + without_userinfo(printable_utf8(message)) + "\n");
}

}  // namespace sentry_prof::cli
