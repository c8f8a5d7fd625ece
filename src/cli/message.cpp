#include "cli/message.h"

#include "base/utf8.h"

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace sentry_prof::cli {

namespace {

constexpr std::string_view kErase = "\r\x1b[K";

// The uploader's thread has something to say, too.
std::mutex g_mutex;
bool g_line_is_drawn = false;

// One write: what other processes say goes before or after.
void write_replacing_line(std::string_view text, bool is_line) {
  const std::lock_guard lock(g_mutex);
  std::string bytes;
  if (g_line_is_drawn || is_line) bytes = kErase;
  bytes += text;
  g_line_is_drawn = is_line;
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

void print(std::string_view text) { write_replacing_line(text, false); }

void draw_line(std::string_view text) { write_replacing_line(text, true); }

void erase_line() {
  const std::lock_guard lock(g_mutex);
  if (!std::exchange(g_line_is_drawn, false)) return;
  std::fwrite(kErase.data(), 1, kErase.size(), stderr);
  std::fflush(stderr);
}

void forget_line() {
  const std::lock_guard lock(g_mutex);
  g_line_is_drawn = false;
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
    if (at == text.npos || text.substr(0, at) == "KEY") continue;  // our own example
    result.append("***");
    text.remove_prefix(at);
  }
}

void complain(std::string_view message) {
  print("sentry-prof: " + without_userinfo(printable_utf8(message)) + "\n");
}

}  // namespace sentry_prof::cli
