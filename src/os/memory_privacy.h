// A secret is in this process's memory from now on.
#pragma once

namespace sentry_prof::os {

// No core dump, and no reading of our memory by the user's other processes (PR_SET_DUMPABLE 0).
// Files of /proc/self belong to root from then on, and a child that is forked later is as private
// until its exec, so that unprivileged sampling of it would be refused: fork first.
void make_memory_private();

}  // namespace sentry_prof::os
