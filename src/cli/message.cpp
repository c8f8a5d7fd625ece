#include "cli/message.h"

#include "base/utf8.h"
#include "os/terminal.h"

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include <unistd.h>

namespace sentry_prof::cli {

namespace {

constexpr std::string_view kErase = "\r\x1b[K";

// The uploader's thread has something to say, too.
std::mutex g_mutex;
bool g_line_is_drawn = false;

// The recording thread draws. It waits for nobody: neither for a thread that prints, nor for a
// terminal that is stopped (^S) or slow.
bool write_at_once(std::string_view bytes) {
  static const os::TerminalLine terminal(STDERR_FILENO);
  return terminal.write(bytes);
}

}  // namespace

// One write: what other processes say goes before or after.
void print(std::string_view text) {
  const std::lock_guard lock(g_mutex);
  std::string bytes(std::exchange(g_line_is_drawn, false) ? kErase : "");
  bytes += text;
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  std::fflush(stderr);
}

void draw_line(std::string_view text) {
  const std::unique_lock lock(g_mutex, std::try_to_lock);
  if (lock && write_at_once(std::string(kErase).append(text))) g_line_is_drawn = true;
}

void erase_line() {
  const std::unique_lock lock(g_mutex, std::try_to_lock);
  if (lock && g_line_is_drawn && write_at_once(kErase)) g_line_is_drawn = false;
}

void forget_line() {
  const std::unique_lock lock(g_mutex, std::try_to_lock);
  if (lock) g_line_is_drawn = false;
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
