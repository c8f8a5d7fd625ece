#include "os/limits.h"

#include "os/directory.h"
#include "os/fd.h"
#include "os/file.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>

namespace sentry_prof::os {

namespace {

// The most that root may set RLIMIT_NOFILE to.
uint64_t kernel_maximum(uint64_t otherwise) {
  const auto text = read_small_file("/proc/sys/fs/nr_open");
  uint64_t value = 0;
  if (!text) return otherwise;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() ? value : otherwise;
}

}  // namespace

uint64_t raise_open_file_limit(uint64_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  if (wanted > limit.rlim_max) {
    // Only CAP_SYS_RESOURCE allows this; others keep the hard limit.
    rlimit beyond{};
    beyond.rlim_cur = beyond.rlim_max = std::min(wanted, kernel_maximum(limit.rlim_max));
    if (beyond.rlim_max > limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &beyond) == 0) {
      return beyond.rlim_cur;
    }
  }
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

// What cannot be listed is taken for as many as there may be: mostly there is no descriptor left.
uint64_t open_file_count() {
  constexpr uint64_t kOfTheListing = 2;  // `directory`, and that of for_each_name()
  const Fd directory(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  uint64_t count = 0;
  for_each_name(directory.get(), [&](const char* name) {
    if (*name != '.') ++count;
  });
  rlimit limit{};
  if (count == 0 && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) return limit.rlim_cur;
  return count - std::min(count, kOfTheListing);
}

}  // namespace sentry_prof::os
