// The file in which a JIT compiler tells perf what it compiled: /tmp/perf-PID.map.
// symbols/perf_map.h reads it.
#pragma once

#include "base/byte_source.h"
#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace sentry_prof::target {

// The file as it is when this is called, which grows as long as the process runs; null if it cannot
// be read. Holds the file open, so that it can be read when its process has ended. Any thread may
// call.
using JitMap = std::function<std::shared_ptr<const ByteSource>()>;
// Of an open file.
JitMap jit_map_of(os::Fd file);

// Opens the maps of processes, each with the pid of its own namespace, in the /tmp that it sees.
// Of one that was looked for while its process lived it keeps where it would be: some programs
// write theirs as the last thing that they do (java -XX:+DumpPerfMapAtExit), and whose the file has
// to be, and which /tmp was meant, nothing tells any more when they have ended.
class JitMapFinder {
 public:
  // Each is a descriptor. Beyond them the one that was looked into longest ago is given up.
  static constexpr size_t kMaxPlaces = 256;

  JitMapFinder();
  JitMapFinder(const JitMapFinder&) = delete;
  JitMapFinder& operator=(const JitMapFinder&) = delete;
  ~JitMapFinder();

  // `program_begin_ns` (CLOCK_MONOTONIC): when the process began to run its program, if it ran
  // another one before; else 0. NotFound: there is none. Else a sentence on why it is not believed:
  // it has to be a regular file and no link, the process's user's or root's alone, and not older
  // than the program. Of a process that has ended one look is enough: its place is not kept.
  // Source: tools/perf/Documentation/jit-interface.txt of the Linux sources.
  Result<os::Fd> open(uint32_t pid, uint64_t program_begin_ns);

 private:
  struct Place;
  std::optional<Place> take_place(uint32_t pid);
  void keep(Place place);

  std::vector<Place> places_;  // the one that was looked into longest ago first
};

// A process of this machine in a recording that was made before, by somebody else.
struct RecordedProcess {
  uint32_t pid = 0;
  uint64_t program_begin_unix_ns = 0;  // when it began to run its program; 0: not known
  uint64_t recording_begin_unix_ns = 0;
  uint64_t recording_end_unix_ns = 0;
};

// As JitMapFinder::open(), in our own /tmp. The map has to be our user's or root's alone, and may
// not be made after the recording. Where it is not known when the program began, and the process
// has ended, it may not be older than the recording.
Result<os::Fd> open_recorded_jit_map(const RecordedProcess& process);

}  // namespace sentry_prof::target
