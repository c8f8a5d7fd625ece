// The parts of a perf.data file that stand around its records: header, events, features. Pure.
// Sources: tools/perf/Documentation/perf.data-file-format.txt, linux/perf_event.h.
#pragma once

#include "base/byte_source.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <linux/perf_event.h>

namespace sentry_prof::formats {

// The first eight bytes of a file, in the byte order of the machine that wrote it.
inline constexpr std::string_view kPerfDataMagic = "PERFILE2";
inline constexpr size_t kPerfDataMagic_bytes = 8;
// Whether these are the first bytes of a perf.data file of any kind, byte order or version.
bool is_perf_data(std::string_view head);

// One event that was recorded.
struct PerfEvent {
  perf_event_attr attr{};  // fields that the file does not have are zero
  std::vector<uint64_t> ids;
  std::string name;  // "cycles:u"; of older files TYPE:CONFIG. As the texts below
};

struct PerfBuildId {
  std::string path;  // as mapping records name it
  std::vector<std::byte> build_id;
};

// One moment on both clocks (HEADER_CLOCK_DATA).
struct PerfClock {
  uint64_t unix_ns = 0;
  uint64_t record_ns = 0;  // on the clock of the records
};

// Where the records stand, and what was told of them.
struct PerfDataHeader {
  bool is_cut_off = false;      // perf did not finish the file: no features, records up to its end
  bool lacks_features = false;  // it ends before all of them, as of a copy that broke off
  bool exceeds_limits = false;  // it has more of events, build ids or features than is read
  uint64_t data_offset = 0;
  uint64_t data_bytes = 0;
  std::vector<PerfEvent> events;
  size_t event_id_count = 0;  // of all events
  std::vector<PerfBuildId> build_ids;
  size_t build_id_paths_bytes = 0;
  std::optional<PerfClock> clock;
  // Printable UTF-8, shortened to kMaxPerfText_bytes.
  std::string host_name;   // as uname -n; empty if not told
  std::string arch;        // as uname -m; empty if not told
  std::string os_release;  // as uname -r; empty if not told
};

// More events, ids of all events, and paths with a build id than this are no file of perf's.
inline constexpr size_t kMaxPerfEvents = 4'096;
inline constexpr size_t kMaxPerfEventIds = 4'000'000;
inline constexpr size_t kMaxPerfBuildIds = 100'000;
// Of all their paths; one has sampling::kLongestPath_bytes at most.
inline constexpr size_t kMaxPerfBuildIdPaths_bytes = size_t{16} << 20;
// Features are read whole, up to this; the names of a machine's files take some 100 KB.
inline constexpr uint64_t kMaxPerfFeature_bytes = uint64_t{16} << 20;
// Of one text of the header. uname's have 64 bytes, and events' names some dozens.
inline constexpr size_t kMaxPerfText_bytes = 256;

// Unsupported: another byte order or version. Malformed. Io: the file cannot be read.
Result<PerfDataHeader> read_perf_header(const ByteSource& file);

// The same facts where they stand in records (pipe mode), each the payload behind the record's
// header. What breaks the format is left out.
void add_perf_attr(Bytes payload, PerfDataHeader& header);     // PERF_RECORD_HEADER_ATTR
void add_perf_feature(Bytes payload, PerfDataHeader& header);  // PERF_RECORD_HEADER_FEATURE
// A whole PERF_RECORD_HEADER_BUILD_ID record, also an entry of the feature.
void add_perf_build_id(Bytes record, PerfDataHeader& header);

}  // namespace sentry_prof::formats
