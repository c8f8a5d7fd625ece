// Processes that a recording does not have, and somebody may miss: what to tell of them, as
// sentences without an end; empty if there are none.
#pragma once

#include "target/process_table.h"

#include <string>
#include <vector>

namespace sentry_prof::recorder {

// That go on when the recording has ended with what it was pointed at. (A daemon's parent ends when
// the daemon has begun.) None in a pid namespace that ends with us.
std::string note_of_left(const target::ProcessTable& processes);

// Of `pids`, which live, those whose end the kernel told: it takes its events from a program that
// becomes setuid, or that its user may not read, when it is executed (perf_event_exec() and
// begin_new_exec() in the kernel).
std::string note_of_escaped(const target::ProcessTable& processes, const std::vector<int>& pids);

// That `pids` had started before, and these in turn, if they are not recorded, too: servers work in
// processes that they started long ago, browsers in those of a process that only forks. Not us: a
// shell that records itself has started us.
std::string note_of_children(const std::vector<int>& pids);

}  // namespace sentry_prof::recorder
