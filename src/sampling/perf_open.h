// Opening events, and why it failed.
#pragma once

#include "os/fd.h"
#include "sampling/perf_attr.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace sentry_prof::sampling {

// The kernel refuses a higher frequency. Empty: it cannot be read.
// Source: kernel.perf_event_max_sample_rate, Documentation/admin-guide/sysctl/kernel.rst.
std::optional<uint32_t> max_sample_rate_hz();

// perf_event_open(2) with close-on-exec. Not open on failure: errno then says why.
os::Fd open_event(const perf_event_attr& attr, pid_t tid, int cpu);

// Tries on this process what the kernel lets us have, and gives up what it may refuse: kernel mode,
// the cycles counter, counts of losses, build ids, periods of parents, inheriting by threads only,
// context switches. PermissionDenied, Unsupported or InvalidArgument with advice if nothing is left
// to give up.
Result<EventChoices> probe_choices(EventChoices wanted);

// Why an event on a thread of `pid` could not be opened, though one on this process could.
Error explain_target_failure(int error_number, pid_t pid);

}  // namespace sentry_prof::sampling
