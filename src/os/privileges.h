// Whose rights this process has, and what a user can do about one that is missing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::os {

// A capability, by the number and the name of linux/capability.h.
struct Capability {
  unsigned number = 0;
  std::string_view name;
};
inline constexpr Capability kCapSysPtrace{19, "CAP_SYS_PTRACE"};
inline constexpr Capability kCapSysAdmin{21, "CAP_SYS_ADMIN"};
inline constexpr Capability kCapPerfmon{38, "CAP_PERFMON"};  // Linux 5.8
inline constexpr Capability kCapBpf{39, "CAP_BPF"};          // likewise

// Whether it is effective in this process.
bool has_capability(const Capability& capability);

// "run as root, or with CAP_X"; something else for root, who has been there already, and for who
// has it. Continues a sentence.
std::string how_to_get(const Capability& capability);

// Of the user who called sudo (SUDO_UID, SUDO_GID); none without it.
std::optional<unsigned> sudo_uid();
std::optional<unsigned> sudo_gid();

}  // namespace sentry_prof::os
