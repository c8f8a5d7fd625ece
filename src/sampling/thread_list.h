// The threads of a process at this moment.
#pragma once

#include <vector>

#include <sys/types.h>

namespace sentry_prof::sampling {

// From /proc/PID/task. Empty if the process is gone.
std::vector<pid_t> list_threads(pid_t pid);

}  // namespace sentry_prof::sampling
