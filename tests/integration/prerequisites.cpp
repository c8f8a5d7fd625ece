#include "prerequisites.h"

#include "process.h"

#include <cerrno>
#include <cstring>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sentry_prof::testing {

std::optional<std::string> missing_perf() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_STACK_USER;
  attributes.sample_stack_user = 8192;
  attributes.exclude_kernel = 1;
  attributes.disabled = 1;
  const long fd = ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return std::string("perf_event_open: ") + std::strerror(errno);
  ::close(static_cast<int>(fd));
  return std::nullopt;
}

std::optional<std::string> missing_program(const std::string& name) {
  const auto found = run_command({.arguments = {"sh", "-c", "command -v \"$0\"", name}});
  if (found.status() == 0) return std::nullopt;
  return name + " is not installed";
}

std::optional<std::string> missing_root() {
  if (::geteuid() == 0) return std::nullopt;
  return "needs root";
}

std::optional<std::string> missing_in_mount_namespace(const std::string& what,
                                                      const std::string& script) {
  if (auto missing = missing_program("unshare")) return missing;
  if (run_command({.arguments = {"unshare", "-m", "sh", "-c", script}}).status() == 0) {
    return std::nullopt;
  }
  return what + " may not be made here";
}

std::optional<std::string> missing_mount_namespace() {
  return missing_in_mount_namespace("a private mount namespace", "true");
}

}  // namespace sentry_prof::testing
