#include "os/ordinary_reader.h"

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

}  // namespace sentry_prof::os
