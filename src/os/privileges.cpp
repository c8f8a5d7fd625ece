#include "os/privileges.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

// Of the calling thread.
__user_cap_header_struct header_of_this_thread() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

constexpr uint32_t kReadAnything = (1u << CAP_DAC_OVERRIDE) | (1u << CAP_DAC_READ_SEARCH);

}  // namespace

AsOrdinaryReader::AsOrdinaryReader() {
  static_assert(sizeof(previous_) == 2 * sizeof(__user_cap_data_struct));
  auto header = header_of_this_thread();
  if (::syscall(SYS_capget, &header, previous_.data()) != 0) return;
  auto changed = previous_;
  changed[0][0] &= ~kReadAnything;
  if (changed == previous_) return;
  header = header_of_this_thread();
  is_changed_ = ::syscall(SYS_capset, &header, changed.data()) == 0;
}

AsOrdinaryReader::~AsOrdinaryReader() {
  if (!is_changed_) return;
  auto header = header_of_this_thread();
  ::syscall(SYS_capset, &header, previous_.data());
}

std::string how_to_get(std::string_view capability) {
  // A container's root has few capabilities unless more are asked for.
  if (::geteuid() == 0)
    return fmt::format("root has no {} here: add it to the container", capability);
  return fmt::format("run as root, or with {}", capability);
}

}  // namespace sentry_prof::os
