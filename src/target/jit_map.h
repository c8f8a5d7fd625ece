// The file in which a JIT compiler tells perf what it compiled: /tmp/perf-PID.map.
// symbols/perf_map.h reads it.
#pragma once

#include "base/byte_source.h"
#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace sentry_prof::target {

// The file as it is when this is called, which grows as long as the process runs; null if it cannot
// be read. Holds the file open, so that it can be read when its process has ended. Any thread may
// call.
using JitMap = std::function<std::shared_ptr<const ByteSource>()>;
// Of an open file.
JitMap jit_map_of(os::Fd file);

// Of a living process, with the pid of its own namespace, in the /tmp that it sees.
// `program_begin_ns` (CLOCK_MONOTONIC): when it began to run its program, if it ran another one
// before; else 0. NotFound: there is none. Else a sentence on why it is not believed: it has to be a
// regular file and no link, the process's user's or root's alone, and not older than the program.
// Source: tools/perf/Documentation/jit-interface.txt of the Linux sources.
Result<os::Fd> open_jit_map(uint32_t pid, uint64_t program_begin_ns);

}  // namespace sentry_prof::target
