#include "sampling/thread_list.h"

#include <charconv>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <fmt/format.h>

namespace sentry_prof::sampling {

std::vector<pid_t> list_threads(pid_t pid) {
  const auto close = [](DIR* directory) { ::closedir(directory); };
  std::unique_ptr<DIR, decltype(close)> directory(
      ::opendir(fmt::format("/proc/{}/task", pid).c_str()), close);
  std::vector<pid_t> threads;
  if (!directory) return threads;
  while (const dirent* entry = ::readdir(directory.get())) {
    const char* end = entry->d_name + std::strlen(entry->d_name);
    pid_t tid = 0;
    const auto [stop, error] = std::from_chars(entry->d_name, end, tid);
    if (error == std::errc() && stop == end) threads.push_back(tid);
  }
  return threads;
}

}  // namespace sentry_prof::sampling
