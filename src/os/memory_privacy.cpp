#include "os/memory_privacy.h"

#include <sys/prctl.h>

namespace sentry_prof::os {

void make_memory_private() { ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

}  // namespace sentry_prof::os
