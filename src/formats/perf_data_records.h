// Goes through the records of a perf.data file as they stand there, what is compressed expanded.
// Pure. Sources: tools/perf/Documentation/perf.data-file-format.txt,
// tools/lib/perf/include/perf/event.h.
#pragma once

#include "base/byte_source.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <functional>
#include <string>

namespace sentry_prof::formats {

// perf's own types, above all of the kernel's.
enum PerfUserRecord : uint32_t {
  kPerfHeaderAttr = 64,
  kPerfHeaderTracingData = 66,
  kPerfHeaderBuildId = 67,
  kPerfFinishedRound = 68,
  kPerfAuxtrace = 71,
  kPerfHeaderFeature = 80,
  kPerfCompressed = 81,
  kPerfFinishedInit = 82,
  kPerfCompressed2 = 83,  // Linux 6.16
};
inline constexpr uint32_t kFirstPerfUserRecord = 64;

// "KSYMBOL", "THREAD_MAP"; "unknown" for all others, of which a file may hold billions.
std::string name_of_perf_record(uint32_t type);

// What is expanded at most: four and a half hours of one busy CPU at 1000 samples of 64 KiB a
// second. It bounds the time that
// a file made for it can take (zstd expands a byte to 30 KB).
inline constexpr uint64_t kMaxPerfExpanded_bytes = uint64_t{1} << 40;

struct PerfRecordRange {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  uint64_t max_expanded_bytes = kMaxPerfExpanded_bytes;
};

enum class PerfRecordsEnd : uint8_t {
  Whole,      // all were read
  CutOff,     // the last one ends behind the range
  Malformed,  // a size that cannot be, or damaged compressed data: what follows cannot be found
};

// Calls `visit` with each record, whole, in the order of the file; those of compressed ones are
// visited in their place, they themselves are not. The bytes hold until `visit` returns. Io if the
// file cannot be read; LimitExceeded beyond `max_expanded_bytes`. Memory: below 2 MiB, and what
// zstd takes (compress/expander.h). Ends early, as if all were read, once `goes_on` says false: it
// is asked before each record, the compressed ones counted as one.
Result<PerfRecordsEnd> for_each_perf_record(
    const ByteSource& file, const PerfRecordRange& range, const std::function<void(Bytes)>& visit,
    const std::function<bool()>& goes_on = [] { return true; });

}  // namespace sentry_prof::formats
