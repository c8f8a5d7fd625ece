// Names of the temporaries that AtomicFile writes: ".NAME.PID-RANDOM.sentry-prof-tmp".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace sentry_prof::os {

// A fresh name for a temporary of `name` that this process owns. Always fits into NAME_MAX.
std::string make_temporary_name(std::string_view name);

// The pid in `candidate` if it is a temporary of `name`.
std::optional<pid_t> owner_of_temporary(std::string_view candidate, std::string_view name);

// Removes temporaries of `name` in the open directory whose process is gone.
void remove_stale_temporaries(int directory_fd, std::string_view name);

}  // namespace sentry_prof::os
