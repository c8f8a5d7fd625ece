#include "cli/message.h"

#include "base/utf8.h"

#include <cstdio>
#include <string>

namespace sentry_prof::cli {

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void complain(std::string_view message) { print("sentry-prof: " + printable_utf8(message) + "\n"); }

}  // namespace sentry_prof::cli
