// A perf.data file (perf-record(1)) as a sequence of events in order of time. Pure: bytes through a
// ByteSource, which is read twice.
#pragma once

#include "formats/perf_data_header.h"
#include "formats/perf_data_records.h"
#include "formats/perf_event_table.h"
#include "sampling/event.h"
#include "sampling/sampler.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace sentry_prof::formats {

// What a first reading of all records tells.
struct PerfDataSurvey {
  // On the clock of the records; 0: no record has a time. Times that few others are near to, by
  // days, do not count: damaged times must not make a recording of centuries.
  uint64_t first_time_ns = 0;
  uint64_t last_time_ns = 0;
  // Of the first sample that is handed on and has user state (a thread of the kernel has none); 0:
  // no such sample.
  uint32_t main_pid = 0;
  PerfRecordsEnd end = PerfRecordsEnd::Whole;
};

// What became of the records.
struct PerfDataFigures {
  // As of a sampler. Samples of other events and of idle CPUs are not among them; a rest of the
  // file that cannot be read counts as one sample that could not be decoded.
  sampling::SamplerStats stats;
  uint64_t samples_of_other_events = 0;
  uint64_t filtered_samples = 0;            // that perf itself left out (perf record --filter)
  uint64_t idle_samples = 0;                // of CPUs that had nothing to do (perf record -a)
  uint64_t kernel_mappings = 0;             // of the kernel, whose frames are not recorded
  uint64_t late_records = 0;                // see PerfRecordOrder
  std::map<std::string, uint64_t> skipped;  // records of types that say nothing of stacks, by name
};

class PerfData {
 public:
  // Reads the header and surveys all records. `file` must outlive this. As read_perf_header(),
  // for_each_perf_record() and PerfEventTable::check().
  static Result<PerfData> open(const ByteSource& file,
                               uint64_t max_expanded_bytes = kMaxPerfExpanded_bytes);

  const PerfDataHeader& header() const { return header_; }
  const PerfDataSurvey& survey() const { return survey_; }
  // PerfEventTable::sampled_event(). Its samples are handed on, and those of events that count the
  // same on cores of another kind.
  const PerfEvent& sampled_event() const { return header_.events[table_.sampled_event()]; }

  // Hands on the events, those of the kernel's own mappings excepted; times never decrease. A
  // record without time gets that of the one before it; one with a time outside the survey's is
  // handed on as undecodable. A mapping without build id gets the one that the header has for its
  // path. Stops once `is_wanted`, which is asked before each record, says false. Io: the file
  // changed meanwhile.
  Result<PerfDataFigures> play(
      sampling::EventSink& sink,
      const std::function<bool()>& is_wanted = [] { return true; }) const;

 private:
  PerfData(const ByteSource& file, PerfDataHeader header, PerfEventTable table,
           PerfDataSurvey survey, PerfRecordRange range)
      : file_(&file),
        header_(std::move(header)),
        table_(std::move(table)),
        survey_(survey),
        range_(range) {}

  const ByteSource* file_;
  PerfDataHeader header_;
  PerfEventTable table_;
  PerfDataSurvey survey_;
  PerfRecordRange range_;
};

}  // namespace sentry_prof::formats
