#include "os/privileges.h"

#include "os/file.h"
#include "os/proc_text.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::os {
namespace {

std::optional<unsigned> id_from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  unsigned id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return id;
}

}  // namespace

bool has_capability(const Capability& capability) {
  const auto text = read_small_file("/proc/self/status");
  const auto self = text ? parse_status(*text) : std::nullopt;
  return self && ((self->effective_capabilities >> capability.number) & 1) != 0;
}

std::string how_to_get(const Capability& capability) {
  if (has_capability(capability)) {
    return fmt::format(
        "{} is there, so something else forbids it (a security module, or a process of a user "
        "namespace above this one)",
        capability.name);
  }
  // A container's root has few capabilities unless more are asked for.
  if (::geteuid() == 0)
    return fmt::format("root has no {} here: add it to the container", capability.name);
  return fmt::format("run as root, or with {}", capability.name);
}

std::optional<unsigned> sudo_uid() { return id_from_environment("SUDO_UID"); }

std::optional<unsigned> sudo_gid() { return id_from_environment("SUDO_GID"); }

}  // namespace sentry_prof::os
