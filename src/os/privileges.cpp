#include "os/privileges.h"

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::os {

std::string how_to_get(std::string_view capability) {
  // A container's root has few capabilities unless more are asked for.
  if (::geteuid() == 0)
    return fmt::format("root has no {} here: add it to the container", capability);
  return fmt::format("run as root, or with {}", capability);
}

}  // namespace sentry_prof::os
