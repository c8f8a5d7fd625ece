// Names of the temporaries that AtomicFile writes: ".NAME.PID-RANDOM.sentry-prof-tmp".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace sentry_prof::os {

// A fresh name for a temporary of `name` that this process owns. Always fits into NAME_MAX: of a
// long name it has the beginning.
std::string make_temporary_name(std::string_view name);

struct TemporaryName {
  std::string_view name;  // within what was parsed; of a long one the beginning
  pid_t owner = 0;
};
// Nothing for whatever make_temporary_name does not write.
std::optional<TemporaryName> parse_temporary(std::string_view candidate);

// Removes temporaries of `name` in the open directory whose process is gone.
void remove_stale_temporaries(int directory_fd, std::string_view name);
// The same for all whose name, as TemporaryName has it, `is_ours`.
void remove_stale_temporaries(int directory_fd,
                              const std::function<bool(std::string_view name)>& is_ours);

}  // namespace sentry_prof::os
