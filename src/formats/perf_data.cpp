#include "formats/perf_data.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace sentry_prof::formats {

namespace {

// The first reading: what pipes tell of the file between its records, and the limits of time.
class Surveyor {
 public:
  explicit Surveyor(PerfDataHeader& header) : header_(header) {}

  void on_record(Bytes record) {
    const uint32_t type = sampling::read_record_header(record).type;
    const Bytes payload = record.subspan(sampling::RecordHeader::kSizeBytes);
    if (type == kPerfHeaderAttr) add_perf_attr(payload, header_);
    if (type == kPerfHeaderFeature) add_perf_feature(payload, header_);
    if (type == kPerfHeaderBuildId) add_perf_build_id(record, header_);
    if (type < kFirstPerfUserRecord) on_kernel_record(type, record);
  }

  PerfDataSurvey survey() const { return survey_; }
  // Of all events that the file tells of.
  Result<PerfEventTable> table() {
    make_table();
    return *table_;
  }

 private:
  void make_table() {
    if (table_ && events_in_table_ == header_.events.size()) return;
    events_in_table_ = header_.events.size();
    table_ = PerfEventTable::create(header_.events);
  }

  void on_kernel_record(uint32_t type, Bytes record) {
    make_table();
    const Result<PerfEventTable>& table = *table_;
    if (!table) return;
    const size_t event = table->event_of(record);
    const uint64_t time_ns = table->time_of(event, record);
    if (is_perf_time(time_ns)) {
      const bool is_first = survey_.first_time_ns == 0;
      survey_.first_time_ns = is_first ? time_ns : std::min(survey_.first_time_ns, time_ns);
      survey_.last_time_ns = std::max(survey_.last_time_ns, time_ns);
    }
    const bool is_sample = type == PERF_RECORD_SAMPLE && event == table->sampled_event();
    if (is_sample && survey_.main_pid == 0) survey_.main_pid = pid_of(*table, event, record);
  }

  static uint32_t pid_of(const PerfEventTable& table, size_t event, Bytes sample) {
    ByteReader in(sample, std::endian::native);
    in.skip(table.layout_of(event).sample_tid_offset());
    return in.u32();
  }

  PerfDataHeader& header_;
  PerfDataSurvey survey_;
  std::optional<Result<PerfEventTable>> table_;
  size_t events_in_table_ = 0;
};

}  // namespace

Result<PerfData> PerfData::open(const ByteSource& file, uint64_t max_expanded_bytes) {
  auto header = read_perf_header(file);
  if (!header) return tl::unexpected(header.error());
  Surveyor surveyor(*header);
  const PerfRecordRange range{header->data_offset, header->data_bytes, max_expanded_bytes};
  const auto end =
      for_each_perf_record(file, range, [&](Bytes record) { surveyor.on_record(record); });
  if (!end) return tl::unexpected(end.error());
  auto table = surveyor.table();
  if (!table) return tl::unexpected(table.error());
  PerfDataSurvey survey = surveyor.survey();
  survey.end = header->is_cut_off && *end == PerfRecordsEnd::Whole ? PerfRecordsEnd::CutOff : *end;
  return PerfData(file, std::move(*header), std::move(*table), survey, range);
}

}  // namespace sentry_prof::formats
