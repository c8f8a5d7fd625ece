#include "os/priority.h"

#include <sys/resource.h>

namespace sentry_prof::os {

namespace {
constexpr int kHighest = -20;
}

// Linux keeps a nice value for each thread; "process 0" is the calling one (setpriority(2)).
void set_thread_nice(int nice) { ::setpriority(PRIO_PROCESS, 0, nice); }

RaisedPriority::RaisedPriority() : previous_(::getpriority(PRIO_PROCESS, 0)) {
  set_thread_nice(kHighest);
}

RaisedPriority::~RaisedPriority() { set_thread_nice(previous_); }

}  // namespace sentry_prof::os
