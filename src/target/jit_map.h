// The file in which a JIT compiler tells perf what it compiled: /tmp/perf-PID.map.
// symbols/perf_map.h reads it.
#pragma once

#include "base/byte_source.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace sentry_prof::target {

// The file as it is when it is called, which grows as long as the process runs; null if it cannot
// be read. Holds the file open, so that it can be read when its process has ended. Any thread may
// call.
using JitMap = std::function<std::shared_ptr<const ByteSource>()>;

// Of a living process, with the pid of its own namespace, in the /tmp that it sees. Empty if there
// is none that can be believed: a regular file and no link, the process's user's or root's own, not
// older than the process (another had the pid). Source: tools/perf/util/map.c and
// tools/perf/Documentation/jit-interface.txt.
JitMap find_jit_map(uint32_t pid);

}  // namespace sentry_prof::target
