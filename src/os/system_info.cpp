#include "os/system_info.h"

#include "base/ascii.h"
#include "os/file.h"

#include <sys/utsname.h>

namespace sentry_prof::os {

namespace {

std::string read_dmi(const char* field) {
  const auto text = read_small_file(std::string("/sys/class/dmi/id/") + field, 4096);
  return text ? std::string(trimmed(*text)) : std::string();
}

}  // namespace

KernelRelease split_kernel_release(std::string_view release) {
  const size_t numbers_end = std::min(release.find_first_not_of("0123456789."), release.size());
  std::string_view version = release.substr(0, numbers_end);
  std::string_view build = release.substr(numbers_end);
  while (version.ends_with('.')) version.remove_suffix(1);
  if (build.starts_with('-') || build.starts_with('+')) build.remove_prefix(1);
  return {std::string(version), std::string(build)};
}

SystemInfo read_system_info() {
  SystemInfo info;
  utsname names{};
  if (::uname(&names) == 0) {
    KernelRelease release = split_kernel_release(names.release);
    info.name = names.sysname;
    info.version = std::move(release.version);
    info.build = std::move(release.build);
    info.host_name = names.nodename;
    info.architecture = names.machine;
  }
  info.manufacturer = read_dmi("sys_vendor");
  info.model = read_dmi("product_name");
  return info;
}

}  // namespace sentry_prof::os
