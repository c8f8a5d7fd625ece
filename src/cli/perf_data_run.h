// A perf.data file played into the recording thread's work.
#pragma once

#include "formats/perf_data.h"
#include "recorder/chunk_sink.h"
#include "recorder/figures.h"
#include "sentry_prof/profile.h"

#include <cstdint>
#include <string>

namespace sentry_prof::cli {

struct PerfDataRun {
  uint64_t file_modified_unix_ns = 0;  // the end of the recording, where the file does not say when
  uint64_t chunk_ns = 60'000'000'000;
  uint64_t max_chunk_json_bytes = 0;
  Session session;
  std::string build_id_cache;  // target::LocalFiles
};

// Unsupported: recorded on another architecture. LimitExceeded: no second thread. Io.
Result<recorder::RunFigures> convert_perf_data(const formats::PerfData& data,
                                               const PerfDataRun& run, recorder::ChunkSink& sink);

}  // namespace sentry_prof::cli
